"""The `microguard` command."""

from __future__ import annotations

import sys

from jobs.command import run_command


def main() -> int:
    """Run the verb that the command line names; the exit code."""
    return run_command(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
