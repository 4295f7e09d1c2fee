"""`spark-submit jobs/adjust.py`: the same as `microguard adjust`."""

import sys

from jobs.command import run_command

if __name__ == "__main__":
    sys.exit(run_command(["adjust", *sys.argv[1:]]))
