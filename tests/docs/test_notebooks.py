"""Run the notebook of every example on one Spark session, and compare its output with that in the file.

After an intended change, write them again: MICROGUARD_DOCS=write pytest tests/docs/test_notebooks.py
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.docs.console import DOCS
from tests.docs.test_examples import KEY, WRITE

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("IPython")
notebooks = pytest.importorskip("tests.docs.notebooks")
#: The notebook that the plain run executes; the others cost seconds of processor time each.
PLAIN = "census"


def _cases() -> list[object]:
    return [
        pytest.param(path, id=path.stem, marks=() if WRITE or path.stem == PLAIN else pytest.mark.long)
        for path in notebooks.NOTEBOOKS
    ]


def test_every_folder_of_examples_has_a_specification_a_file_and_a_notebook() -> None:
    for folder in (each for each in (DOCS / "examples").iterdir() if each.is_dir()):
        assert len(list(folder.glob("*.ipynb"))) == 1, folder.name
        assert list(folder.glob("*.toml")), folder.name
        assert folder.name == "table" or list(folder.glob("*.csv")), (
            folder.name
        )  # this folder uses the file of the folder business


@pytest.mark.parametrize("path", _cases())
def test_notebook_has_the_output_of_its_cells(path: Path, spark, tmp_path, monkeypatch) -> None:
    key = tmp_path / "key"
    key.write_bytes(KEY)
    key.chmod(0o600)
    monkeypatch.setenv("MICROGUARD_KEY_FILE", str(key))
    shutil.copytree(DOCS / "examples", tmp_path / "examples")
    found = notebooks.execute(path, (tmp_path / "examples" / path.parent.name).resolve(), spark)
    if WRITE:
        nbformat.write(found, path)
        return
    shown = nbformat.read(path, as_version=4)
    again = f"MICROGUARD_DOCS=write pytest tests/docs/test_notebooks.py -k {path.stem}"
    for ours, cell in zip(found.cells, shown.cells, strict=True):
        assert ours.get("outputs") == cell.get("outputs"), f"{path.name} is outdated; write it again: {again}"
