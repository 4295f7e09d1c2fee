"""Tests of checkpoints: a finished step is reused only if none of its files changed."""

import pytest
from microguard.pipelines.publication.staging.folder import FolderStagingArea
from microguard.pipelines.records.checkpoint import read_checkpoint, write_checkpoint

NAME = "protected-all"


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / NAME
    path.mkdir()
    for name in "ab":
        (path / f"{name}.parquet").write_bytes(b"records of " + name.encode())
    return path


def test_finished_checkpoint_folder_returns_its_reports(folder):
    assert read_checkpoint(None, FolderStagingArea(folder.parent), NAME) is None
    write_checkpoint(None, FolderStagingArea(folder.parent), NAME, [{"block": 0}])
    assert read_checkpoint(None, FolderStagingArea(folder.parent), NAME) == [{"block": 0}]


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "a.parquet").write_bytes(b"records of c"),
        lambda folder: (folder / "a.parquet").write_bytes(b""),
        lambda folder: (folder / "a.parquet").unlink(),
        lambda folder: (folder / "c.parquet").write_bytes(b""),
        lambda folder: folder.with_name("protected-all.checkpoint.json").write_text('{"files": {'),
        lambda folder: folder.with_name("protected-all.checkpoint.json").write_text("[]"),
    ],
)
def test_changed_checkpoint_folder_is_not_treated_as_finished(folder, change):
    write_checkpoint(None, FolderStagingArea(folder.parent), NAME)
    change(folder)
    assert read_checkpoint(None, FolderStagingArea(folder.parent), NAME) is None
