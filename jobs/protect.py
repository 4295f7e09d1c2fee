"""`spark-submit jobs/protect.py`: the same as `microguard protect`."""

import sys

from jobs.command import run_command

if __name__ == "__main__":
    sys.exit(run_command(["protect", *sys.argv[1:]]))
