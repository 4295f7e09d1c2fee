"""`spark-submit jobs/withdraw.py`: the same as `microguard withdraw`."""

import sys

from jobs.command import run_command

if __name__ == "__main__":
    sys.exit(run_command(["withdraw", *sys.argv[1:]]))
