"""Run `microguard benchmark` with spark-submit jobs/benchmark.py."""

import sys

from microguard import main

if __name__ == "__main__":
    sys.exit(main(["benchmark", *sys.argv[1:]]))
