"""Run `microguard protect` with spark-submit jobs/protect.py."""

import sys

from microguard import main

if __name__ == "__main__":
    sys.exit(main(["protect", *sys.argv[1:]]))
