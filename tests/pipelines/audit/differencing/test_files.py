"""Tests of the joint audit of release files, aligned from public files alone and with the map of the
evidence.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.audit.differencing.cells import count_disclosed_cells, is_table, read_table
from microguard.pipelines.audit.differencing.exposure import joint_exposure
from microguard.pipelines.audit.differencing.members import Members, classes_from_members
from microguard.pipelines.audit.differencing.published import is_records, read_records, rounding_unit

from tests.pipelines.audit.differencing.alignment import align_releases
from tests.pipelines.audit.differencing.public_files import write_members, write_records, write_table

ROLES = {"region": ("region", None), "income": ("quasi_identifier", "numeric"), "hours": ("other", None)}
INCOMES = np.array([1000.0, 1100, 1200, 1300, 2000, 2100, 2200, 2300])


def published(classes: list[list[int]], regions: list[str] | None = None) -> pd.DataFrame:
    """Return the records of persons 0 to 7 in classes, with distinct values of `hours`."""
    rows = [
        (regions[i] if regions else "n", np.round(INCOMES[members].mean(), 2), 30 + person / 10)
        for i, members in enumerate(classes)
        for person in members
    ]
    return pd.DataFrame(rows, columns=["region", "income", "hours"])


def keys(classes: list[list[int]]) -> list[bytes]:
    return [hashlib.blake2b(bytes([p]), digest_size=16).digest() for members in classes for p in members]


def test_align_releases_matches_records_by_unmodified_columns(tmp_path):
    nights = [[[0, 1, 2, 3], [4, 5, 6, 7]], [[0, 1, 2], [4, 5, 6, 7]]]
    folders = [write_records(tmp_path, f"r{i}", published(night), ROLES) for i, night in enumerate(nights)]
    exposure = joint_exposure(align_releases([read_records(folder) for folder in folders]))
    assert exposure.below_k == 1
    assert exposure.determined_values == 1


def test_align_releases_matches_equal_classes_without_unmodified_columns(tmp_path):
    roles = {name: role for name, role in ROLES.items() if name != "hours"}
    nights = [[[0, 1, 2, 3]], [[0, 1, 2, 3], [4, 5, 6, 7]]]
    frames = [published(night).drop(columns="hours") for night in nights]
    folders = [write_records(tmp_path, f"r{i}", frame, roles) for i, frame in enumerate(frames)]
    exposure = joint_exposure(align_releases([read_records(folder) for folder in folders]))
    assert (exposure.units, exposure.smallest_history) == (8, 4)
    assert exposure.safe


def test_members_reveal_exposure_that_alignment_of_public_files_misses(tmp_path):
    roles = {name: role for name, role in ROLES.items() if name != "hours"}
    nights = [[[0, 1, 2, 3], [4, 5, 6, 7]], [[0, 1, 2], [3, 4, 5, 6, 7]]]
    maps = []
    for i, night in enumerate(nights):
        frame = published(night).drop(columns="hours")
        labels = [position for position, members in enumerate(night) for _ in members]
        release = read_records(write_records(tmp_path, f"r{i}", frame, roles))
        folder = write_members(tmp_path / f"members{i}", f"r{i}", frame, labels, keys(night))
        members = Members.read(folder)
        assert members is not None
        assert members.describes(release)
        maps.append(members)
    exposure = joint_exposure(classes_from_members(maps))
    assert (exposure.below_k, exposure.determined_units, exposure.collisions) == (1, 1, (("r0", 1),))


def test_members_describes_is_false_for_other_files(tmp_path):
    night = [[0, 1, 2, 3], [4, 5, 6, 7]]
    frame = published(night)
    release = read_records(write_records(tmp_path, "r", frame.assign(income=frame["income"] + 1), ROLES))
    members = Members.read(write_members(tmp_path / "m", "r", frame, [0] * 4 + [1] * 4, keys(night)))
    assert members is not None
    assert not members.describes(release)
    assert Members.read(tmp_path) is None


def test_classes_from_members_merges_classes_with_equal_values(tmp_path):
    frame = pd.DataFrame({"region": "n", "income": [5.0] * 8})
    folder = write_members(tmp_path / "m", "r", frame, [0] * 4 + [1] * 4, keys([[*range(8)]]))
    (classes,) = classes_from_members([Members.read(folder)])
    assert len(classes) == 1
    assert classes.sizes.tolist() == [8]


@pytest.mark.parametrize(
    ("values", "unit"), [([1, 2], 1.0), ([1.25, 3.5], 0.01), ([1 / 3, 2.0], 0.0), ([10.0, 20.0], 1.0)]
)
def test_rounding_unit_is_derived_from_the_published_means(values, unit):
    import pyarrow as pa

    assert rounding_unit(pa.chunked_array([pa.array(values)])) == unit


def test_count_disclosed_cells_finds_adjusted_cells_that_are_totals_of_records(tmp_path):
    night = [[0, 1, 2, 3], [4, 5, 6, 7]]
    release = read_records(write_records(tmp_path, "r", published(night, ["n", "s"]), ROLES))
    true = {"n": INCOMES[:4].sum(), "s": INCOMES[4:].sum(), "T": INCOMES.sum()}
    for moved, cells in ((0.0, 0), (50.0, 2)):
        frame = pd.DataFrame({"region": ["n", "s", "T"], "sex": "T", "income": [true[r] for r in "nsT"]})
        frame.loc[:1, "income"] += [moved, -moved]
        folder = write_table(tmp_path, f"t{cells}", frame, "income")
        assert is_table(folder)
        assert not is_records(folder)
        assert count_disclosed_cells([read_table(folder)], [release]) == cells
