"""`spark-submit jobs/verify.py`: the same as `microguard verify`."""

import sys

from jobs.command import run_command

if __name__ == "__main__":
    sys.exit(run_command(["verify", *sys.argv[1:]]))
