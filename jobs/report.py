"""`spark-submit jobs/report.py`: the same as `microguard report`."""

import sys

from jobs.command import run_command

if __name__ == "__main__":
    sys.exit(run_command(["report", *sys.argv[1:]]))
