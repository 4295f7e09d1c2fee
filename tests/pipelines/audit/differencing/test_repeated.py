"""Tests that the joint audit is unchanged if it skips repeated classes, for random series."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from microguard.pipelines.audit.differencing.exposure import joint_exposure
from microguard.pipelines.audit.differencing.histories import histories
from microguard.pipelines.audit.differencing.members import Members, classes_from_members
from microguard.pipelines.audit.differencing.repeated import SeenClasses, all_histories_have_k

K, STREAMS, NIGHTS = 3, 40, 5
ABOUT = {
    "k": K,
    "region": "region",
    "groups": [["x"]],
    "means": ["x"],
    "sensitive": ["s"],
    "weighted_by": "w",
}


def map_of(name, classes, known, about=ABOUT):
    """Return the map of a release with classes (value, members); `known` has region, illness and weight."""
    members = np.array([unit for _, units in classes for unit in units], np.int64)
    label = np.repeat(np.arange(len(classes)), [len(units) for _, units in classes])
    label = pd.factorize([f"{known['region'][units[0]]} {value}" for value, units in classes])[0][label] + 7
    units = pd.DataFrame(
        {"class0": label, "sensitive0": known["s"][members], "version": known["version"][members]}
    )
    values = np.repeat([value for value, _ in classes], [len(units) for _, units in classes])
    shown = pd.DataFrame({"__class": label, "region": known["region"][members], "x": values})
    table = shown.groupby(["__class", "region", "x"], as_index=False).size()
    table = pa.Table.from_pandas(table.rename(columns={"size": "__records"}), preserve_index=False)
    units["weight"] = known["w"][members]
    unit = members.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return Members({**about, "release_id": name}, unit, units, (table,), ({"x": 1.0},))


def series(random):
    """Return releases of a register of 30 units; some break the rule of the series or add a column."""
    known = {
        "region": np.where(np.arange(40) < 20, "n", "s"),
        "s": random.integers(0, 3, 40),
        "w": random.integers(1, 5, 40) / 2.0,
        "version": np.zeros(40, np.int64),
    }
    waiting, standing, maps = list(range(random.integers(12, 40))), [], []
    breaks = random.random() < 0.5
    for night in range(NIGHTS):
        standing = [each for each in standing if each[1] and random.random() < 0.85]
        for region in ("n", "s"):
            there = [unit for unit in waiting if known["region"][unit] == region and random.random() < 0.7]
            for cut in range(0, len(there) - K + 1, K):
                standing.append((float(random.integers(1, 6)), there[cut : cut + K]))
                waiting = [unit for unit in waiting if unit not in there[cut : cut + K]]
        if breaks and night and standing:
            which = int(random.integers(len(standing)))
            value, units = standing[which]
            what = random.integers(4)
            if what == 0:
                standing[which] = (value, units[:-1])
            elif what == 1:
                known = {**known, "w": known["w"] + (np.arange(40) == units[0])}
            elif what == 2:
                known = {**known, "s": np.where(np.arange(40) == units[0], 0, known["s"])}
            else:
                known = {**known, "version": known["version"] + (np.arange(40) == units[0])}
        shown = [standing[i] for i in random.permutation(len(standing)) if standing[i][1]]
        if shown:
            maps.append(map_of(f"r{night}", shown, known))
    return maps


def parts(classes, by_record):
    """Return the sets of members with equal history."""
    number = 1 + max(int((each.record if by_record else each.unit).max(initial=-1)) for each in classes)
    return np.sort(histories(classes, number, by_record=by_record).sizes).tolist()


def test_auditing_new_classes_alone_equals_auditing_all_classes():
    random, believed, left_out, unsafe = np.random.default_rng(3), 0, 0, 0
    for _ in range(STREAMS):
        maps, repeated = series(random), SeenClasses()
        new = [repeated.new_in(each) for each in maps]
        few, many = classes_from_members(new), classes_from_members(maps)
        assert all_histories_have_k(few) == all_histories_have_k(many)
        assert all(parts(few, by_record) == parts(many, by_record) for by_record in (False, True))
        if all_histories_have_k(few):
            assert joint_exposure(few) == joint_exposure(many)
            believed += 1
        unsafe += not joint_exposure(many).safe
        left_out += sum(len(one.unit) - len(other.unit) for one, other in zip(maps, new, strict=True))
    assert min(believed, unsafe) > STREAMS // 10
    assert left_out > STREAMS


@pytest.mark.parametrize("what", ["member", "weight", "sensitive", "version", "value", "k", "nothing"])
def test_new_in_keeps_a_class_if_any_known_value_differs(what):
    nothing = {name: np.zeros(40, np.int64) for name in ("s", "version")}
    known = nothing | {"region": np.full(40, "n"), "w": np.ones(40)}
    changed = {"weight": "w", "sensitive": "s", "version": "version"}
    other = dict(known)
    if what in changed:
        other[changed[what]] = known[changed[what]] + (np.arange(40) == 1)
    first = map_of("r0", [(5.0, [1, 2, 3]), (6.0, [4, 5, 6])], known)
    members, value = [1, 2, 9] if what == "member" else [1, 2, 3], 7.0 if what == "value" else 5.0
    second = map_of(
        "r1", [(value, members), (6.0, [6, 4, 5])], other, ABOUT | {"k": 4} if what == "k" else ABOUT
    )
    repeated = SeenClasses()
    assert len(repeated.new_in(first).unit) == 6
    assert len(repeated.new_in(second).unit) == {"nothing": 0, "k": 6}.get(what, 3)
    assert repeated.any == (what != "k")


def test_new_in_returns_maps_of_several_groups_unchanged():
    known = {name: np.ones(40) for name in ("s", "w", "version")} | {"region": np.full(40, "n")}
    one = map_of("r0", [(5.0, [1, 2, 3])], known)
    two = replace(one, about={**one.about, "groups": [["x"], ["y"]]})
    repeated = SeenClasses()
    assert repeated.new_in(two) is two
    assert repeated.new_in(two) is two
