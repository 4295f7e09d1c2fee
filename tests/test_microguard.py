"""Tests of `import microguard` and its command in projects with packages of the same names as ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]


def test_microguard_works_in_a_project_with_folders_of_the_same_names(tmp_path: Path) -> None:
    """The other packages precede ours on the import path."""
    for name in ("jobs", "pipelines", "schemas", "sdc"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    code = (
        "import sys, microguard; print(len(microguard.microaggregate([[1.], [2.], [3.]], 3).labels)); "
        "sys.exit(microguard.main(['--help']))"
    )
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(tmp_path), str(ROOT)]))
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("3\n")


def test_import_sdc_warns_and_returns_the_objects_of_microguard_sdc(tmp_path: Path) -> None:
    code = (
        "import sys, warnings\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    import sdc.errors\n"
        "import microguard, microguard.sdc.errors\n"
        "assert sys.modules['sdc.errors'] is microguard.sdc.errors\n"
        "assert sdc.errors.__spec__.name == 'microguard.sdc.errors'\n"
        "print([str(each.message) for each in caught if each.category is DeprecationWarning])\n"
    )
    for path in (ROOT, ROOT / "deploy" / "deprecated"):
        done = subprocess.run(
            [sys.executable, "-P", "-c", code],
            env=dict(os.environ, PYTHONPATH=os.pathsep.join([str(path), str(ROOT)])),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        assert "import microguard.sdc instead" in done.stdout


def test_process_that_loaded_duckdb_prints_only_its_reason(tmp_path: Path) -> None:
    code = "import sys, microguard; sys.exit(microguard.main(['verify', 'absent']))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=dict(os.environ, PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 2
    reason = " ".join(done.stderr.split())
    assert reason.startswith("'absent' is no release: expected a release folder")
    assert reason.endswith("Check the path.")


def run_from_archive(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run code with our packages in a zip archive on the path, as ``spark-submit --py-files`` puts them."""
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
        timeout=300,
    )


@pytest.mark.parametrize(
    "code",
    ["import sys, microguard; sys.exit(microguard.main(['--help']))", "from microguard import Protection"],
)
def test_main_and_import_refuse_an_archive_of_py_files(tmp_path: Path, code: str) -> None:
    done = run_from_archive(tmp_path, code)
    assert done.returncode == 1
    assert done.stdout == ""
    last = done.stderr.splitlines()[-1]
    assert "microguard was loaded from an archive, microguard.zip" in last
    assert "Install microguard as a package" in last
    assert not list(tmp_path.glob("**/kernels-*"))
