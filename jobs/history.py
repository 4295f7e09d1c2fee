"""Run `microguard history` with spark-submit jobs/history.py."""

import sys

from microguard import main

if __name__ == "__main__":
    sys.exit(main(["history", *sys.argv[1:]]))
