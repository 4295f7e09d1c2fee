"""Private folders: what lies in one is private, whatever the umask."""

from __future__ import annotations

from pathlib import Path

import pytest
from microguard.pipelines.engine.files import PRIVATE, private_folder


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_missing_parents_in_a_private_folder_are_private(tmp_path: Path) -> None:
    evidence = private_folder(tmp_path / "out" / "evidence")
    made = private_folder(evidence / "series" / "persons" / "work")
    assert [mode(each) for each in (made, *made.parents[:3])] == [PRIVATE] * 4


def test_missing_parents_in_an_open_folder_stay_open_to_readers(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    made = private_folder(tmp_path / "out" / "evidence")
    assert (mode(made), mode(made.parent) & 0o055) == (PRIVATE, 0o055)


def test_a_folder_that_exists_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    assert mode(private_folder(tmp_path)) == 0o750


@pytest.mark.parametrize("path", [".", "evidence"])
def test_relative_paths_are_made_where_they_are(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert private_folder(Path(path)).is_dir()
