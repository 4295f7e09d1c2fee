"""Tests of finished blocks: they are reused if nothing changed, and solved again otherwise."""

from dataclasses import replace

import numpy as np
import pytest
from microguard.pipelines.engine.versions import deciding_versions, in_words
from microguard.pipelines.intake.fixed_point import Scale
from microguard.pipelines.publication.staging.folder import FolderStagingArea
from microguard.pipelines.records import block as protect
from microguard.pipelines.records import finished_blocks
from microguard.pipelines.records.block import protect_block

from tests.pipelines.records.one_block import block, clustering, plan


def test_finished_block_is_read_from_its_folder(tmp_path, monkeypatch):
    table, kept = block([1.0, 2.0, 9.0, 12.0]), clustering(resume=(FolderStagingArea(tmp_path), "blocks"))
    first, _, _ = protect_block(table, kept)
    monkeypatch.setattr(protect, "_solve", None)
    again, report, _ = protect_block(table, kept)
    assert report["resumed"] is True
    assert again.equals(first)
    changed, report, _ = protect_block(block([1.0, 2.0, 9.0, 12.5]), kept)
    # stored labels are not used for a block with other content
    assert (len(changed), report["status"]) == (0, "failed")
    longer = replace(kept, plan=plan({"income": Scale(2.0, 1.0, 4)}, 9_000))
    # a block of a longer run has a smaller share of the work, so its labels differ
    assert protect_block(table, longer)[1]["status"] == "failed"


def test_finished_block_of_another_solver_version_is_solved_again(tmp_path, monkeypatch):
    table, resuming = block([1.0, 2.0, 9.0, 12.0]), clustering(resume=(FolderStagingArea(tmp_path), "blocks"))
    _, first, _ = protect_block(table, resuming)
    assert first["software"] == in_words(deciding_versions())
    assert protect_block(table, resuming)[1]["resumed"]
    monkeypatch.setattr(finished_blocks, "deciding_versions", lambda: {"highspy": "0.1"})
    assert "resumed" not in protect_block(table, resuming)[1]


@pytest.mark.parametrize("damage", ["cut off", "too small clusters", "too few labels"])
def test_damaged_finished_block_is_solved_again(damage, tmp_path):
    table, resuming = block([1.0, 2.0, 9.0, 12.0]), clustering(resume=(FolderStagingArea(tmp_path), "blocks"))
    first, _, _ = protect_block(table, resuming)
    (path,) = tmp_path.glob("blocks/*.npz")
    if damage == "cut off":
        path.write_bytes(path.read_bytes()[:100])
    else:
        labels = np.array([0, 0, 0, 1] if damage == "too small clusters" else [0, 0])
        np.savez(path, labels=labels, certificate="{}")
    again, report, _ = protect_block(table, resuming)
    assert report["status"] == "done"
    assert "resumed" not in report
    assert again.equals(first)
