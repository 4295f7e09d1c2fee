"""`spark-submit jobs/check.py`: the same as `microguard check`."""

import sys

from microguard import main

if __name__ == "__main__":
    sys.exit(main(["check", *sys.argv[1:]]))
