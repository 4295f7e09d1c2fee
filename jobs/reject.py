"""Run `microguard reject` with spark-submit jobs/reject.py."""

import sys

from microguard import main

if __name__ == "__main__":
    sys.exit(main(["reject", *sys.argv[1:]]))
