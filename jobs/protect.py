"""`spark-submit jobs/protect.py`: the same as `microguard protect`."""

import sys

from microguard import main

if __name__ == "__main__":
    sys.exit(main(["protect", *sys.argv[1:]]))
