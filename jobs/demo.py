"""`spark-submit jobs/demo.py`: the same as `microguard demo`."""

import sys

from microguard import main

if __name__ == "__main__":
    sys.exit(main(["demo", *sys.argv[1:]]))
