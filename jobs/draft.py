"""Run `microguard draft` with spark-submit jobs/draft.py."""

import sys

from microguard import main

if __name__ == "__main__":
    sys.exit(main(["draft", *sys.argv[1:]]))
