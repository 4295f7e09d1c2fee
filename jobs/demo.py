"""`spark-submit jobs/demo.py`: the same as `microguard demo`."""

import sys

from jobs.command import run_command

if __name__ == "__main__":
    sys.exit(run_command(["demo", *sys.argv[1:]]))
