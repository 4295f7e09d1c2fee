"""Run `microguard approve` with spark-submit jobs/approve.py."""

import sys

from microguard import main

if __name__ == "__main__":
    sys.exit(main(["approve", *sys.argv[1:]]))
