"""`import microguard` and its command, where packages of other people have the names of ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

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


def test_a_process_that_loaded_the_other_engine_ends_with_its_reason_alone(tmp_path: Path) -> None:
    code = "import sys, microguard; sys.exit(microguard.main(['verify', 'absent']))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=dict(os.environ, PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert " ".join(done.stderr.split()).endswith("or a specification file.")


def from_an_archive(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run code where the packages lie in a zip, as ``spark-submit --py-files`` puts them on the path."""
    archive = folder / "microguard.zip"
    with ZipFile(archive, "w") as zipped:
        zipped.write(ROOT / "microguard.py", "microguard.py")
        for name in ("jobs", "pipelines", "schemas", "sdc"):
            for path in (ROOT / name).rglob("*.py"):
                zipped.write(path, path.relative_to(ROOT))
    environment = dict(os.environ, PYTHONPATH=str(archive))
    return subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    "code",
    ["import sys, microguard; sys.exit(microguard.main(['--help']))", "from microguard import Protection"],
)
def test_an_archive_of_py_files_is_refused_with_what_to_do_instead(tmp_path: Path, code: str) -> None:
    done = from_an_archive(tmp_path, code)
    assert done.returncode == 1
    assert done.stdout == ""
    last = done.stderr.splitlines()[-1]
    assert "microguard was loaded from an archive, microguard.zip" in last
    assert "Install microguard as a package" in last
    assert not list(tmp_path.glob("**/kernels-*"))
