"""Run `microguard start` with spark-submit jobs/start.py."""

import sys

from microguard import main

if __name__ == "__main__":
    sys.exit(main(["start", *sys.argv[1:]]))
