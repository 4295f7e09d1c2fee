"""`spark-submit jobs/adjust.py`: the same as `microguard adjust`."""

import sys

from microguard import main

if __name__ == "__main__":
    sys.exit(main(["adjust", *sys.argv[1:]]))
