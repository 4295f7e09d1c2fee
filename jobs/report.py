"""Run `microguard report` with spark-submit jobs/report.py."""

import sys

from microguard import main

if __name__ == "__main__":
    sys.exit(main(["report", *sys.argv[1:]]))
