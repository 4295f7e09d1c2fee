"""Run `microguard clean` with spark-submit jobs/clean.py."""

import sys

from microguard import main

if __name__ == "__main__":
    sys.exit(main(["clean", *sys.argv[1:]]))
