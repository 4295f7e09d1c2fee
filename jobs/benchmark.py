"""`spark-submit jobs/benchmark.py`: the same as `microguard benchmark`."""

import sys

from jobs.command import run_command

if __name__ == "__main__":
    sys.exit(run_command(["benchmark", *sys.argv[1:]]))
