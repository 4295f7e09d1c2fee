"""`spark-submit jobs/draft.py`: the same as `microguard draft`."""

import sys

from microguard import main

if __name__ == "__main__":
    sys.exit(main(["draft", *sys.argv[1:]]))
