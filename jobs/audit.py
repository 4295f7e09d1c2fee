"""Run `microguard audit` with spark-submit jobs/audit.py."""

import sys

from microguard import main

if __name__ == "__main__":
    sys.exit(main(["audit", *sys.argv[1:]]))
