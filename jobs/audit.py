"""`spark-submit jobs/audit.py`: the same as `microguard audit`."""

import sys

from microguard import main

if __name__ == "__main__":
    sys.exit(main(["audit", *sys.argv[1:]]))
