"""`import microguard` and its command, where packages of other people have the names of ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def beside_another(name: str, folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run code where a package of that name is found before ours."""
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text("")
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(folder), str(ROOT)]))
    return subprocess.run(
        [sys.executable, "-P", "-c", code], env=environment, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("name", ["jobs", "pipelines", "schemas", "sdc"])
def test_a_package_that_hides_ours_is_named_in_the_first_line(name: str, tmp_path: Path) -> None:
    done = beside_another(name, tmp_path, "import sys, microguard; sys.exit(microguard.main(['--help']))")
    assert done.returncode == 1
    assert done.stdout == ""
    first = done.stderr.splitlines()[0]
    assert f"{name} ({tmp_path / name})" in first
    assert "Traceback" not in done.stderr


def test_the_public_names_are_not_given_from_a_package_that_hides_ours(tmp_path: Path) -> None:
    done = beside_another("sdc", tmp_path, "import microguard; microguard.microaggregate")
    assert done.returncode == 1
    assert "ImportError: microguard finds other packages in place of its own: sdc" in done.stderr
