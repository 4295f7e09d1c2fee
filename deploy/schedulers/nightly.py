"""A night of microguard as a scheduler sees it: what came of it, and whether trying again can help.

Beside `airflow_dag.py` and `dagster_assets.py`, which import it; needs the standard library alone.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Specification, input, gate and protection: the same again ends the same, and a person has to look.
REFUSED = {2: "specification refused", 3: "input rejected", 4: "gate refused", 5: "protection failed"}
COMMAND = ("microguard",)


@dataclass(frozen=True)
class Night:
    """How a run ended.

    Attributes
    ----------
    exit_code : int
        0 done; see `REFUSED`; all else may end otherwise when it is tried again, which resumes it.
    outcome : dict
        What ``--outcome`` says, without values of records; empty where the run was killed before it could.
    """

    exit_code: int
    outcome: dict[str, Any]

    @property
    def refused(self) -> bool:
        """Whether trying again ends the same."""
        return self.exit_code in REFUSED

    @property
    def reason(self) -> str:
        """Why it ended so, in a sentence that may be logged."""
        return str(self.outcome.get("reason", f"microguard ended with exit code {self.exit_code}."))


def protect(specification: str, command: Sequence[str] = COMMAND) -> Night:
    """Call ``microguard protect`` and wait.

    The outcome counts before the exit code: cluster modes of spark-submit lose the latter.

    Parameters
    ----------
    specification : str
        Path of the release specification.
    command : sequence of str
        ``("spark-submit", "--master", "yarn", ".../jobs/protect.py")`` on a cluster, without the verb then.
    """
    verb = () if command[-1].endswith("protect.py") else ("protect",)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "outcome.json"
        done = subprocess.run(
            [*command, *verb, specification, "--quiet", "--outcome", str(file)], check=False
        )
        outcome = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return Night(int(outcome.get("exit_code", done.returncode)), outcome)
