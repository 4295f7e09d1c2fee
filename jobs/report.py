"""`spark-submit jobs/report.py`: the same as `microguard report`."""

import sys

from microguard import main

if __name__ == "__main__":
    sys.exit(main(["report", *sys.argv[1:]]))
