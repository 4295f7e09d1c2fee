"""Run `microguard withdraw` with spark-submit jobs/withdraw.py."""

import sys

from microguard import main

if __name__ == "__main__":
    sys.exit(main(["withdraw", *sys.argv[1:]]))
