"""Run `microguard demo` with spark-submit jobs/demo.py."""

import sys

from microguard import main

if __name__ == "__main__":
    sys.exit(main(["demo", *sys.argv[1:]]))
