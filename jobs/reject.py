"""`spark-submit jobs/reject.py`: the same as `microguard reject`."""

import sys

from microguard import main

if __name__ == "__main__":
    sys.exit(main(["reject", *sys.argv[1:]]))
