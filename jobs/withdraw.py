"""`spark-submit jobs/withdraw.py`: the same as `microguard withdraw`."""

import sys

from microguard import main

if __name__ == "__main__":
    sys.exit(main(["withdraw", *sys.argv[1:]]))
