"""`spark-submit jobs/pending.py`: the same as `microguard pending`."""

import sys

from microguard import main

if __name__ == "__main__":
    sys.exit(main(["pending", *sys.argv[1:]]))
