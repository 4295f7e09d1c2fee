"""`spark-submit jobs/benchmark.py`: the same as `microguard benchmark`."""

import sys

from microguard import main

if __name__ == "__main__":
    sys.exit(main(["benchmark", *sys.argv[1:]]))
