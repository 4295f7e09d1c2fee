"""The JVM gets the quick compiler for what is small, and an archive of classes where there is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.engine import jvm

QUICK = "-XX:TieredStopAtLevel=1"


@pytest.fixture(autouse=True)
def _without_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jvm, "ARCHIVE", tmp_path / "none.jsa")
    monkeypatch.setattr(jvm, "SMALL_INPUT", 100)


@pytest.mark.parametrize(("sizes", "quick"), [((60,), True), ((60, 40), True), ((60, 41), False)])
def test_the_files_of_a_folder_or_glob_count_together(sizes: tuple[int, ...], quick: bool, tmp_path: Path):
    folder = tmp_path / "records" / "part"
    folder.mkdir(parents=True)
    for number, size in enumerate(sizes):
        (folder / f"{number}.parquet").write_bytes(bytes(size))
    for name in (folder, folder.parent, folder / "*.parquet", tmp_path / "*" / "part"):
        assert jvm.is_small(str(name)) == quick


def test_an_input_of_unknown_size_is_not_small_and_an_absent_one_is(tmp_path: Path):
    assert not jvm.is_small(None)
    assert jvm.is_small(str(tmp_path / "absent"))


def test_what_is_small_gets_the_quick_compiler():
    assert jvm.jvm_options(small=False) == ()
    assert QUICK in jvm.jvm_options(small=True)


def test_classes_come_from_the_archive_where_there_is_one(tmp_path: Path):
    (tmp_path / "none.jsa").touch()
    assert f"-XX:SharedArchiveFile={tmp_path / 'none.jsa'}" in jvm.jvm_options(small=False)
