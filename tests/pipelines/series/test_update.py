"""Tests that a class is published, suppressed and republished as a whole: by hand, by brute force, by joint
audit.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.audit.differencing.classes import Classes
from microguard.pipelines.audit.differencing.exposure import joint_exposure
from microguard.pipelines.series.settings import CLASS, VERSION, SeriesSettings

from tests.pipelines.series.register import Register, streams

pytestmark = pytest.mark.spark
STREAMS = 20


def persons(region, *units, **incomes):
    """Return units of a region; the income is 100 times the unit number unless given."""
    income_of = {int(name[1:]): value for name, value in incomes.items()}
    values = [float(income_of.get(unit, 100 * unit)) for unit in units]
    return pd.DataFrame({"unit": units, "region": region, "income": values})


#: Regions whose updates can be checked by hand, in addition to the random regions.
BY_HAND = [
    [
        persons("n", 1, 2, 3, 4, 5, 6),
        persons("c", 101, 102, 103, 104, 105, 106),
        persons("r", 201, 202, 203, 204, 205),
        persons("e", 301, 302, 303, 304, 305, 306),
    ],
    [persons("n", 1, 2, 3, 4, 5, 7, 8, u5=9999), persons("c", 101, 102, 103, 104, 105, 106, u101=10150)],
    [
        persons("n", *range(1, 13)),
        persons("c", 101, 102, 103, 104, 105, 106),
        persons("e", *range(301, 307), u301=7, u302=7, u303=7, u304=7, u305=7, u306=7),
    ],
    [
        persons("n", *range(4, 13)),
        persons("c", 101, 102, 103, 104, 105, 106, u101=10150, u102=10250, u103=10350),
    ],
    [
        persons("n", 1, *range(4, 13), 20),
        persons("c", 101, 102, 103, 104, u101=10150),
        persons("r", 201, 202, 203),
    ],
    [
        persons("n", *range(1, 13), 20),
        persons("c", 101, 102, 103, 104, 105, 106),
        persons("r", 201, 202, 203, 204, 205),
    ],
]


def run(spark, changes, nights):
    register = Register(spark, SeriesSettings(k=3, pool=5, changes=changes))
    for tonight in nights:
        register.go_on(tonight)
    return register


def nights_of(by_hand, seed):
    random = streams(np.random.default_rng(seed), STREAMS, len(by_hand))
    return [pd.concat([*hand, drawn], ignore_index=True) for hand, drawn in zip(by_hand, random, strict=True)]


@pytest.fixture(scope="module")
def keeping(spark):
    return run(spark, "keep", nights_of(BY_HAND, 5))


@pytest.fixture(scope="module")
def republishing(spark):
    return run(spark, "republish", nights_of(BY_HAND[:4], 6))


def shown(register, night, region):
    frame = register.nights[night].query("region == @region")
    return dict(zip(frame["unit"], frame["income"], strict=True))


def of_region(register, region):
    return register.units.where(f"__region = '{region}'").toPandas()


def audited(nights, k):
    """Run the joint audit of updates; rows of a region with equal values are a class."""
    records = pd.Index(pd.unique(pd.concat([night["unit"] * 100 + night[VERSION] for night in nights])))
    classes = []
    for i, frame in enumerate(nights):
        of = pd.factorize(frame["region"] + frame["income"].astype(str))[0]
        first = np.unique(of, return_index=True)[1]
        classes.append(
            Classes(
                f"r{i}",
                k,
                ("income",),
                frame["unit"].to_numpy(),
                of,
                pd.factorize(frame["region"])[0][first],
                {"income": frame["income"].to_numpy()[first]},
                {"income": 0.01},
                record=records.get_indexer(frame["unit"] * 100 + frame[VERSION]),
            )
        )
    return joint_exposure(classes)


def histories(nights):
    """Return for each set of (update, region, published value) the units that were in it: brute force."""
    classes_of = {}
    for i, frame in enumerate(nights):
        for unit, region, value in zip(frame["unit"], frame["region"], frame["income"], strict=True):
            classes_of.setdefault(unit, set()).add((i, region, value))
    return Counter(frozenset(history) for history in classes_of.values())


def test_update_republishes_unchanged_units_bit_for_bit(keeping):
    for before, after in zip(keeping.nights, keeping.nights[1:], strict=False):
        both = before.merge(after, on=["unit", VERSION, CLASS], suffixes=("", "_after"))
        assert len(both) > 100
        assert (both["income"] == both["income_after"]).all()


def test_entrants_form_a_new_class_and_never_join_a_published_class(keeping):
    assert set(shown(keeping, 1, "n")) == {1, 2, 3, 4, 5, 6}
    assert set(shown(keeping, 2, "n")) == set(range(1, 7)) | {7, 8, 9, 10, 11, 12}
    assert not {shown(keeping, 2, "n")[unit] for unit in range(7, 13)} & set(shown(keeping, 1, "n").values())


def test_update_retains_records_of_exits_until_their_class_is_suppressed(keeping):
    assert 6 in shown(keeping, 1, "n")  # one unit left, and its class is still published
    assert not {1, 2, 3} & set(shown(keeping, 3, "n"))  # all three units left at one update


def test_returning_unit_of_a_suppressed_class_is_pending_until_half_of_the_class_returned(keeping):
    assert 1 not in shown(keeping, 4, "n")
    assert {1, 2, 3} <= set(shown(keeping, 5, "n"))
    assert 20 not in shown(keeping, 5, "n")  # one unit has waited since the previous update


def test_suppressed_class_is_republished_when_half_of_its_units_have_returned(keeping):
    first = shown(keeping, 0, "r")
    assert set(first) == {201, 202, 203, 204, 205}
    assert not shown(keeping, 3, "r")
    assert shown(keeping, 4, "r") == shown(keeping, 5, "r") == first  # three of five units have returned


def test_unit_that_returns_with_other_values_is_published_with_its_earlier_values(keeping):
    first = shown(keeping, 0, "e")
    assert set(first.values()) == {30200.0, 30500.0}
    assert not shown(keeping, 1, "e")
    assert shown(keeping, 2, "e") == first


def test_units_that_return_with_values_of_another_history_form_another_class(republishing):
    assert not shown(republishing, 1, "e")
    assert shown(republishing, 2, "e") == dict.fromkeys(range(301, 307), 7.0)
    classes = republishing.nights[2].query("region == 'e'").groupby(CLASS)["unit"].agg(set)
    assert sorted(classes, key=min) == [{301, 302, 303}, {304, 305, 306}]


def test_corrections_are_not_published_if_changes_are_kept(keeping):
    for night in range(1, 6):
        assert shown(keeping, night, "c") == shown(keeping, 0, "c")


def test_corrections_are_published_if_enough_units_of_one_history_are_corrected(republishing):
    first = shown(republishing, 0, "c")
    assert shown(republishing, 1, "c") == shown(republishing, 2, "c") == first
    assert shown(republishing, 3, "c") == first | {101: 10250.0, 102: 10250.0, 103: 10250.0}
    # this update publishes their new values
    assert {count.stale for count in republishing.counts} == {0}


def test_reversed_correction_restores_the_published_version(republishing):
    state = of_region(republishing, "c")
    assert len(state.query("__status == 'standing'")) == 6
    standing = set(state.query("__status == 'standing'")["__version"])
    assert standing == {0, 4}  # either the first version or the version of the update that corrected the unit


def test_corrections_of_one_unit_have_different_versions_when_an_earlier_one_is_reversed(spark):
    values = [{}, dict.fromkeys(range(401, 407), 900), dict.fromkeys((404, 405, 406), 900)]
    values += [values[2] | dict.fromkeys((401, 402, 403), 1300), values[1]]
    nights = [
        persons("v", *range(401, 410), **{f"u{unit}": 500 for unit in range(401, 410)} | given)
        for given in ({f"u{unit}": value for unit, value in each.items()} for each in values)
    ]
    register = run(spark, "republish", nights)
    assert register.counts[3].born == 3
    for count, shown_tonight in zip(register.counts, register.nights, strict=True):
        assert count.units == 9 == len(shown_tonight) - count.ghosts
        assert not shown_tonight.duplicated(["unit", VERSION]).any()
    assert min(histories(register.nights).values()) == 3


@pytest.mark.parametrize("changes", ["keeping", "republishing"])
def test_no_history_of_a_random_stream_is_shared_by_fewer_than_k_units(changes, request):
    register = request.getfixturevalue(changes)
    units_by_history = histories(register.nights)
    assert len(units_by_history) > 50
    assert min(units_by_history.values()) >= 3
    exposure = audited(register.nights, 3)
    assert exposure.safe, exposure.faults()
    assert (exposure.smallest_history, exposure.determined_values) == (min(units_by_history.values()), 0)
    for name in ("departed", "returned", "corrected", "born", "leavers"):
        assert sum(getattr(count, name) for count in register.counts[1:]) > 0, name


def test_counts_of_an_update_add_up_to_its_units(keeping, republishing):
    for register in (keeping, republishing):
        for count, shown_tonight in zip(register.counts, register.nights, strict=True):
            assert count.published == len(shown_tonight)
            assert count.units == count.published - count.ghosts + count.waiting


def test_waiting_unit_that_was_never_published_leaves_no_state(keeping):
    state = keeping.units.toPandas()
    assert state.query("__status == 'gone'")["__class"].notna().all()


def test_update_does_not_depend_on_the_order_of_rows(spark, keeping):
    nights = nights_of(BY_HAND, 5)[:2]
    again = run(spark, "keep", [frame.sample(frac=1, random_state=1) for frame in nights])
    pd.testing.assert_frame_equal(again.nights[1], keeping.nights[1])


def test_refusal_of_exceeded_limits_names_their_counts(keeping):
    count = keeping.counts[-1]
    assert count.exceeded_limits(SeriesSettings(k=3, pool=5, max_waiting=1, max_ghosts=1, max_stale=1)) == ()
    (message,) = count.exceeded_limits(SeriesSettings(k=3, pool=5, max_waiting=0, max_ghosts=1, max_stale=1))
    assert (
        message
        == f"series.max_waiting: found {count.waiting} of {count.units}, expected a share of at most 0"
    )


def test_units_count_as_renumbered_if_both_exits_and_entrants_outnumber_the_known_units(keeping):
    count = replace(keeping.counts[-1], units=100, comers=60, leavers=41)
    assert count.renumbered
    assert not replace(count, leavers=40).renumbered
    assert not replace(count, comers=50, leavers=90).renumbered
    assert replace(count, units=3, comers=3, leavers=1).renumbered
