"""Units that come under other identifiers are known by their records, and not published in second classes."""

from __future__ import annotations

import secrets

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.intake.unit_key import ROW
from microguard.pipelines.job import Job
from microguard.pipelines.protect import records_of
from microguard.pipelines.run import run
from microguard.pipelines.series.identifiers import renamed
from microguard.pipelines.series.settings import EVENT, SUPERSEDED
from microguard.schemas.errors import GateRefused

from tests.pipelines.series.test_append import Stream
from tests.pipelines.series.test_register import Series, population

pytestmark = pytest.mark.spark


def beside(spark, comers, away):
    """Rows of a night: hashes of the records of those who came, and of those who are away."""
    absent = ("left", "ghost", "gone")
    events = ["comer"] * len(comers) + [absent[i % 3] for i in range(len(away))]
    rows = np.concatenate([comers, away]).astype(np.int64)
    return spark.createDataFrame(pd.DataFrame({ROW: rows, EVENT: events, SUPERSEDED: False}))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kinds", [20, 300, 100_000])
def test_comers_drawn_apart_from_those_who_left_are_others(spark, seed, kinds):
    random = np.random.default_rng(seed)
    chances = random.dirichlet(np.full(kinds, 0.5))
    comers, away = (random.choice(kinds, size, p=chances) for size in (400, 2000))
    assert not renamed(beside(spark, comers, away))


@pytest.mark.parametrize("again", [0, 20, 400])
def test_comers_with_the_records_of_those_who_left_are_known(spark, again):
    random = np.random.default_rng(1)
    away = random.integers(-(2**62), 2**62, 2000)
    comers = np.concatenate([away[:again], random.integers(-(2**62), 2**62, 400 - again)])
    assert renamed(beside(spark, comers, away)) == (again > 0)


def tonight(spark, comers, left, stay):
    """Rows of a night on which the others stay."""
    events = ["comer"] * len(comers) + ["left"] * len(left) + ["unchanged"] * len(stay)
    rows = np.concatenate([comers, left, stay]).astype(np.int64)
    return spark.createDataFrame(pd.DataFrame({ROW: rows, EVENT: events, SUPERSEDED: False}))


@pytest.mark.parametrize("again", [0, 4, 9])
def test_a_few_who_leave_and_come_with_records_that_nobody_else_has_are_known(spark, again):
    random = np.random.default_rng(1)
    stay, left, comers = (random.integers(-(2**62), 2**62, size) for size in (1000, 10, 10))
    both = random.integers(-(2**62), 2**62, again)
    night = tonight(spark, np.concatenate([both, comers]), np.concatenate([both, left]), stay)
    assert renamed(night) == (again == 9)


@pytest.mark.parametrize("kinds", [40, 300, 3000])
def test_comers_and_leavers_of_kinds_that_nobody_stays_of_are_others(spark, kinds):
    random = np.random.default_rng(1)
    comers, left = (random.integers(0, kinds, 100) for _ in range(2))
    assert not renamed(tonight(spark, comers, left, 1_000_000 + random.integers(0, 5000, 5000)))


@pytest.mark.parametrize("many", [6000, 12000])
def test_of_many_a_sample_is_compared(spark, many):
    random = np.random.default_rng(1)
    away = random.integers(-(2**62), 2**62, many)
    assert renamed(beside(spark, away[: many // 2], away))


def numbered(n=400):
    """The town under numbers of four digits, of which a tenth begin with a zero."""
    people = population(n)
    return people.assign(person=[f"{25 * i:04d}" for i in range(n)])


def without_zeros(frame):
    """The same as a tool hands it on that takes texts of digits for numbers."""
    return frame.assign(person=frame["person"].astype(int).astype(str))


def prefixed(frame):
    return frame.assign(person="p" + frame["person"])


def anew(series, frame, **publish):
    """A night of a register that is solved from the start."""
    frame.to_parquet(series.folder / "persons.parquet", index=False)
    spec = series.specified(**publish)
    with series.areas.lock():
        job = Job(series.spark, spec, series.areas, Progress(quiet=True))
        return run(records_of(spec, rebase=True), job).content


@pytest.fixture(scope="module")
def begun(spark, tmp_path_factory):
    series = Series(spark, tmp_path_factory.mktemp("identifiers"))
    series.first = series.night(numbered())["release_id"]
    return series


def test_a_part_of_a_register_without_its_leading_zeros_is_refused(begun):
    tonight = without_zeros(numbered())
    assert (tonight["person"] != numbered()["person"]).sum() == 40
    with pytest.raises(GateRefused, match="other identifiers"):
        begun.night(tonight)
    assert begun.areas.public.current() == begun.first


def test_a_register_is_not_solved_anew_of_the_same_records_under_other_identifiers(begun):
    with pytest.raises(GateRefused, match="other identifiers"):
        anew(begun, prefixed(numbered()))
    recoded = prefixed(numbered()).assign(weight=lambda frame: frame["weight"] * 1.1)
    with pytest.raises(GateRefused, match="other identifiers"):
        anew(begun, recoded)


def test_a_register_is_not_gone_on_with_under_another_key(begun):
    key = begun.areas.evidence / "key"
    before = key.read_text()
    key.write_text(secrets.token_hex(32))
    for night in (begun.night, lambda frame: anew(begun, frame)):
        with pytest.raises(GateRefused, match="another secret"):
            night(numbered())
    key.write_text(before)


def test_events_that_were_appended_before_are_known_under_other_identifiers(spark, tmp_path):
    stream = Stream(spark, tmp_path)
    first = stream.night(numbered())["release_id"]
    for again in (prefixed(numbered()), prefixed(numbered().iloc[:60])):
        with pytest.raises(GateRefused, match=f"{first}.*other identifiers"):
            stream.night(again)
    others = numbered().assign(person=lambda frame: frame["person"] + "x")
    others["weight"] = others["weight"].sample(frac=1, random_state=1).to_numpy()
    assert stream.night(others)["night"]["comers"] == 400
