"""Run microguard from a scheduler, and decide whether a failed run should be retried.

`airflow_dag.py` and `dagster_assets.py` import this file; it needs only the standard library.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Exit codes after which a retry would fail again, so that a person must act.
REFUSED = {2: "specification refused", 3: "input rejected", 4: "gate refused", 5: "protection failed"}
COMMAND = ("microguard",)


@dataclass(frozen=True)
class RunResult:
    """Result of a run.

    Attributes
    ----------
    exit_code : int
        0 if the run is done, or one of `REFUSED`. After any other code a retry resumes the run.
    outcome : dict
        The object of ``--outcome``, without values of records; empty if the run was killed.
    """

    exit_code: int
    outcome: dict[str, Any]

    @property
    def refused(self) -> bool:
        """Return whether a retry would fail again."""
        return self.exit_code in REFUSED

    @property
    def reason(self) -> str:
        """Return the reason for the exit code, in a sentence that may be logged."""
        return str(self.outcome.get("reason", f"microguard ended with exit code {self.exit_code}."))


def protect(specification: str, command: Sequence[str] = COMMAND) -> RunResult:
    """Run ``microguard protect`` and wait for its end.

    The exit code is read from the outcome file if there is one, because spark-submit does not return it in
    cluster modes.

    Parameters
    ----------
    specification : str
        Path of the release specification.
    command : sequence of str
        Command without the verb; on a cluster
        ``("spark-submit", "--master", "yarn", ".../jobs/protect.py")``.
    """
    verb = () if command[-1].endswith("protect.py") else ("protect",)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "outcome.json"
        done = subprocess.run(
            [*command, *verb, specification, "--quiet", "--outcome", str(file)], check=False
        )
        outcome = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return RunResult(int(outcome.get("exit_code", done.returncode)), outcome)
