"""`spark-submit jobs/draft.py`: the same as `microguard draft`."""

import sys

from jobs.command import run_command

if __name__ == "__main__":
    sys.exit(run_command(["draft", *sys.argv[1:]]))
