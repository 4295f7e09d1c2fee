"""`spark-submit jobs/clean.py`: the same as `microguard clean`."""

import sys

from jobs.command import run_command

if __name__ == "__main__":
    sys.exit(run_command(["clean", *sys.argv[1:]]))
