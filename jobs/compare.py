"""Run `microguard compare` with spark-submit jobs/compare.py."""

import sys

from microguard import main

if __name__ == "__main__":
    sys.exit(main(["compare", *sys.argv[1:]]))
