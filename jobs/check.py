"""Run `microguard check` with spark-submit jobs/check.py."""

import sys

from microguard import main

if __name__ == "__main__":
    sys.exit(main(["check", *sys.argv[1:]]))
