"""Run `microguard pending` with spark-submit jobs/pending.py."""

import sys

from microguard import main

if __name__ == "__main__":
    sys.exit(main(["pending", *sys.argv[1:]]))
