"""Run `microguard adjust` with spark-submit jobs/adjust.py."""

import sys

from microguard import main

if __name__ == "__main__":
    sys.exit(main(["adjust", *sys.argv[1:]]))
