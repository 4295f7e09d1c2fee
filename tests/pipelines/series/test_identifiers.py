"""Tests of changed identifiers: units are recognised by their records and never enter a second class."""

from __future__ import annotations

import secrets

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.intake.unit_key import ROW
from microguard.pipelines.job import Job
from microguard.pipelines.release import run
from microguard.pipelines.series.identifiers import renamed
from microguard.pipelines.series.settings import EVENT, SUPERSEDED
from microguard.schemas.errors import GateRefused

from tests.pipelines.microdata import records
from tests.pipelines.series.test_append import Stream
from tests.pipelines.series.test_register import Series, population

pytestmark = pytest.mark.spark


def state_rows(spark, entrants, absent):
    """Return rows of an update with entrants and absent units, by the hashes of their records."""
    kinds = ("exit", "ghost", "gone")
    events = ["entrant"] * len(entrants) + [kinds[i % 3] for i in range(len(absent))]
    rows = np.concatenate([entrants, absent]).astype(np.int64)
    return spark.createDataFrame(pd.DataFrame({ROW: rows, EVENT: events, SUPERSEDED: False}))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
@pytest.mark.parametrize("kinds", [20, 300, 100_000])
def test_renamed_is_false_for_entrants_drawn_independently_of_exits(spark, seed, kinds):
    random = np.random.default_rng(seed)
    chances = random.dirichlet(np.full(kinds, 0.5))
    entrants, absent = (random.choice(kinds, size, p=chances) for size in (400, 2000))
    assert not renamed(state_rows(spark, entrants, absent))


@pytest.mark.parametrize("again", [0, 20, 400])
def test_renamed_is_true_for_entrants_with_the_records_of_exits(spark, again):
    random = np.random.default_rng(1)
    absent = random.integers(-(2**62), 2**62, 2000)
    entrants = np.concatenate([absent[:again], random.integers(-(2**62), 2**62, 400 - again)])
    assert renamed(state_rows(spark, entrants, absent)) == (again > 0)


def rows_with_staying_units(spark, entrants, left, stay):
    """Return rows of an update in which other units remain."""
    events = ["entrant"] * len(entrants) + ["exit"] * len(left) + ["unchanged"] * len(stay)
    rows = np.concatenate([entrants, left, stay]).astype(np.int64)
    return spark.createDataFrame(pd.DataFrame({ROW: rows, EVENT: events, SUPERSEDED: False}))


@pytest.mark.parametrize("again", [0, 4, 9])
def test_renamed_is_true_for_few_exits_and_entrants_with_equal_unique_records(spark, again):
    random = np.random.default_rng(1)
    stay, left, entrants = (random.integers(-(2**62), 2**62, size) for size in (1000, 10, 10))
    both = random.integers(-(2**62), 2**62, again)
    rows = rows_with_staying_units(
        spark, np.concatenate([both, entrants]), np.concatenate([both, left]), stay
    )
    assert renamed(rows) == (again == 9)


@pytest.mark.parametrize("kinds", [40, 300, 3000])
def test_renamed_is_false_for_entrants_and_exits_that_coincide_by_chance(spark, kinds):
    random = np.random.default_rng(1)
    entrants, left = (random.integers(0, kinds, 100) for _ in range(2))
    assert not renamed(
        rows_with_staying_units(spark, entrants, left, 1_000_000 + random.integers(0, 5000, 5000))
    )


@pytest.mark.parametrize("many", [pytest.param(6000, marks=pytest.mark.long), 12000])
def test_renamed_compares_a_sample_of_many_entrants(spark, many):
    random = np.random.default_rng(1)
    away = random.integers(-(2**62), 2**62, many)
    assert renamed(state_rows(spark, away[: many // 2], away))


def numbered(n=400):
    """Return the synthetic data with numbers of four digits as identifiers; a tenth begin with a zero."""
    people = population(n)
    return people.assign(person=[f"{25 * i:04d}" for i in range(n)])


def without_zeros(frame):
    """Return the same data after a tool converted texts of digits to numbers."""
    return frame.assign(person=frame["person"].astype(int).astype(str))


def prefixed(frame):
    return frame.assign(person="p" + frame["person"])


def anew(series, frame, **publish):
    """Run an update of a register that is solved from scratch."""
    frame.to_parquet(series.folder / "persons.parquet", index=False)
    spec = series.specified(**publish)
    with series.areas.lock():
        job = Job(series.spark, spec, series.areas, Progress(quiet=True))
        return run(records(spec, series.measures), job, rebase=True).content


@pytest.fixture(scope="module")
def begun(spark, tmp_path_factory):
    series = Series(spark, tmp_path_factory.mktemp("identifiers"))
    series.measures = ()
    series.first = series.night(numbered())["release_id"]
    return series


def test_register_is_refused_if_some_units_lost_their_leading_zeros(begun):
    tonight = without_zeros(numbered())
    assert (tonight["person"] != numbered()["person"]).sum() == 40
    with pytest.raises(GateRefused, match="identifiers appear to have changed"):
        begun.night(tonight)
    assert begun.areas.public.current() == begun.first


def test_rebase_of_the_same_records_with_other_identifiers_is_refused(begun):
    recoded = prefixed(numbered()).assign(weight=lambda frame: frame["weight"] * 1.1)
    with pytest.raises(GateRefused, match="identifiers appear to have changed"):
        anew(begun, recoded)


def test_update_with_another_secret_key_is_refused(begun):
    key = begun.areas.evidence / "key"
    before = key.read_text()
    key.write_text(secrets.token_hex(32))
    for night in (begun.night, lambda frame: anew(begun, frame)):
        with pytest.raises(GateRefused, match="another secret"):
            night(numbered())
    key.write_text(before)


def test_append_refuses_the_same_events_with_other_identifiers(spark, tmp_path):
    stream = Stream(spark, tmp_path)
    first = stream.night(numbered())["release_id"]
    with pytest.raises(GateRefused, match=f"{first}.*identifiers appear to have changed"):
        stream.night(prefixed(numbered().iloc[:60]))
    others = numbered().assign(person=lambda frame: frame["person"] + "x")
    others["weight"] = others["weight"].sample(frac=1, random_state=1).to_numpy()
    assert stream.night(others)["night"]["comers"] == 400
