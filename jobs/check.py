"""`spark-submit jobs/check.py`: the same as `microguard check`."""

import sys

from jobs.command import run_command

if __name__ == "__main__":
    sys.exit(run_command(["check", *sys.argv[1:]]))
