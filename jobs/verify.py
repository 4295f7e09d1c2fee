"""Run `microguard verify` with spark-submit jobs/verify.py."""

import sys

from microguard import main

if __name__ == "__main__":
    sys.exit(main(["verify", *sys.argv[1:]]))
