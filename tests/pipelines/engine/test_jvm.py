"""Tests of JVM options: a quick compiler for small inputs, and a class archive if one exists."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from microguard.pipelines.engine import jvm
from microguard.pipelines.engine.java import java_home
from microguard.pipelines.engine.jvm import InputSize

QUICK = "-XX:TieredStopAtLevel=1"


@pytest.fixture(autouse=True)
def _without_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jvm, "ARCHIVE", tmp_path / "none.jsa")
    monkeypatch.setattr(jvm, "TINY_INPUT", 50)
    monkeypatch.setattr(jvm, "SMALL_INPUT", 100)


@pytest.mark.parametrize(
    ("sizes", "size"),
    [
        ((20, 30), InputSize.TINY),
        ((60,), InputSize.SMALL),
        ((60, 40), InputSize.SMALL),
        ((60, 41), InputSize.LARGE),
    ],
)
def test_files_of_a_folder_or_glob_are_counted_together(
    sizes: tuple[int, ...], size: InputSize, tmp_path: Path
):
    folder = tmp_path / "records" / "part"
    folder.mkdir(parents=True)
    for number, length in enumerate(sizes):
        (folder / f"{number}.parquet").write_bytes(bytes(length))
    for name in (folder, folder.parent, folder / "*.parquet", tmp_path / "*" / "part"):
        assert jvm.input_size(str(name)) is size


def test_input_of_unknown_size_is_large_and_an_absent_input_is_tiny(tmp_path: Path):
    assert jvm.input_size(None) is InputSize.LARGE
    assert jvm.input_size(str(tmp_path / "absent")) is InputSize.TINY


def test_small_inputs_use_the_quick_compiler():
    assert QUICK not in jvm.jvm_options(InputSize.LARGE)
    for size in (InputSize.TINY, InputSize.SMALL):
        assert QUICK in jvm.jvm_options(size)


def test_java_loads_classes_from_the_archive_if_it_exists(tmp_path: Path):
    (tmp_path / "none.jsa").touch()
    assert f"-XX:SharedArchiveFile={jvm.JAVA_ARCHIVE}:{tmp_path / 'none.jsa'}" in jvm.jvm_options(
        InputSize.LARGE
    )


@pytest.mark.spark
def test_java_starts_with_the_options_of_a_large_input_and_reads_the_directives():
    java = java_home() / "bin" / "java"
    ran = subprocess.run(
        [java, *jvm.jvm_options(InputSize.LARGE), "-version"], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert "1 compiler directives added" in ran.stderr
    assert ran.stdout == ""
