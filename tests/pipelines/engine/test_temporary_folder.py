"""Tests of temporary folders: the next process removes those of killed processes and keeps those in use."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import pytest
from microguard.pipelines.engine.files import temporary_folder

#: Create a folder with a file, print its name, and wait.
_HOLD = (
    "import sys; from microguard.pipelines.engine.files import temporary_folder; "
    "folder = temporary_folder(); (folder / 'records').touch(); print(folder, flush=True); sys.stdin.read()"
)


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def holder():
    command = [sys.executable, "-c", _HOLD]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def test_temporary_folder_of_a_killed_process_is_removed_and_folders_in_use_are_kept(temporary):
    foreign = temporary / "microguard-kernels-0"
    foreign.mkdir(0o700)
    (temporary / "microguard-link").symlink_to(foreign)
    process, folder = holder()
    mine = temporary_folder()
    assert mine.stat().st_mode & 0o777 == 0o700
    assert os.listdir(folder) == ["records"]
    process.kill()
    process.communicate()
    assert os.path.isdir(folder)
    temporary_folder()
    assert not os.path.exists(folder)
    assert mine.is_dir()
    assert foreign.is_dir()


def test_process_removes_its_temporary_folder_when_it_ends(temporary):
    process, folder = holder()
    process.communicate("")
    assert process.returncode == 0
    assert not os.path.exists(folder)
