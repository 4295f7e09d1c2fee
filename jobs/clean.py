"""`spark-submit jobs/clean.py`: the same as `microguard clean`."""

import sys

from microguard import main

if __name__ == "__main__":
    sys.exit(main(["clean", *sys.argv[1:]]))
