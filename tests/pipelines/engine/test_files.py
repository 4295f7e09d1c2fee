"""Tests of private folders for any umask, files hashed while written, and calls in threads."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.engine.files import PRIVATE, HashedFile, checksum, in_threads, private_folder


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_private_folder_creates_missing_parents_private(tmp_path: Path) -> None:
    evidence = private_folder(tmp_path / "out" / "evidence")
    made = private_folder(evidence / "series" / "persons" / "work")
    assert [mode(each) for each in (made, *made.parents[:3])] == [PRIVATE] * 4


def test_open_folder_creates_missing_parents_with_read_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    made = private_folder(tmp_path / "out" / "evidence")
    assert (mode(made), mode(made.parent) & 0o055) == (PRIVATE, 0o055)


def test_existing_folder_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    assert mode(private_folder(tmp_path)) == 0o750


@pytest.mark.parametrize("path", [".", "evidence"])
def test_relative_paths_are_created_in_the_working_folder(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert private_folder(Path(path)).is_dir()


def test_hashed_file_has_the_checksum_and_the_bytes_of_the_written_content(tmp_path: Path) -> None:
    path, table = tmp_path / "records.parquet", pa.table({"n": range(1000)})
    with open(path, "wb") as file:
        hashed = HashedFile(file)
        pq.write_table(table, hashed)
        assert hashed.tell() > 0
    assert hashed.checksum == checksum(path)
    assert pq.read_table(path) == table


def test_in_threads_keeps_the_order_and_raises_after_all_running_calls_ended() -> None:
    assert in_threads(lambda number: number**2, range(50)) == [number**2 for number in range(50)]
    ended = []

    def fail_first(number: int) -> None:
        if number == 0:
            raise ValueError
        time.sleep(0.01)
        ended.append(number)

    with pytest.raises(ValueError):
        in_threads(fail_first, range(1000))
    seen = len(ended)
    time.sleep(0.05)
    assert len(ended) == seen < 999
