"""Attack: a source is published again with all labels recoded and all numbers rescaled, under the same names.

The attacker has both releases: the same clusters with two values of k, or records and an adjusted table.
Matching the labels by their counts makes the releases comparable. The control is the comparison without
tables of pairs, which recoding defeats.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.publication.source_fingerprints.conflicts import refuse_conflicts
from microguard.pipelines.publication.source_fingerprints.shape import FREE_TOGETHER, alike
from microguard.pipelines.publication.source_fingerprints.source_fingerprint import (
    FILE,
    SourceFingerprint,
    same_records,
)
from microguard.schemas.errors import GateRefused

from tests.pipelines.publication.source_fingerprints.fingerprints import fingerprint_of
from tests.pipelines.publication.source_fingerprints.test_conflicts import A, Agency, B
from tests.reference import reference_file

DOMAINS = {"region": 17, "sex": 2, "education": 8, "branch": 40}


def survey(number: int, seed: int) -> pd.DataFrame:
    """Return records of one population, whose categories depend on each other; all are coded 0, 1, 2, ..."""
    random, population = np.random.default_rng(seed), np.random.default_rng(99)
    latent = random.random(number)
    columns = {
        name: np.searchsorted(
            np.cumsum(population.dirichlet(np.ones(size)))[:-1], 0.7 * random.random(number) + 0.3 * latent
        )
        for name, size in DOMAINS.items()
    }
    income = np.round(random.lognormal(7, 1, number))
    return pd.DataFrame({**columns, "age": random.integers(15, 90, number), "income": income})


def recoded(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return the records in another order, with new labels and rescaled numbers."""
    random = np.random.default_rng(seed)
    columns = {}
    for name in frame:
        values = frame[name].unique()
        few = len(values) <= 100
        new = dict(zip(values, random.permutation(len(values)) + 3 * seed, strict=True))
        columns[name] = frame[name].map(new) if few else 1.7 * frame[name] + 12
    return pd.DataFrame(columns).sample(frac=1, random_state=seed)


def without_tables(fingerprint: SourceFingerprint) -> SourceFingerprint:
    """Return the fingerprint of software without tables of pairs."""
    return replace(fingerprint, pairs={})


@pytest.mark.parametrize("number", [1000, 5000])
def test_recoded_source_is_recognised_only_by_its_tables_of_pairs(number):
    for seed in range(3):
        frame = survey(number, seed)
        one, other = fingerprint_of(frame), fingerprint_of(recoded(frame, seed + 1))
        assert same_records(one, other)
        assert not same_records(without_tables(one), without_tables(other)), "the control"


def test_recoded_source_of_nearly_all_records_is_recognised():
    frame = survey(3000, 1)
    assert same_records(fingerprint_of(frame), fingerprint_of(recoded(frame.iloc[60:], 2)))


def test_recoded_business_survey_is_recognised_and_its_halves_do_not_match_each_other():
    frame = pd.read_csv(reference_file("business_survey.csv"), dtype=str)
    few = frame[[name for name in frame if frame[name].nunique() <= 200]]
    codes = {name: {v: f"{name}{i}" for i, v in enumerate(sorted(few[name].unique()))} for name in few}
    again = pd.DataFrame({name: few[name].map(codes[name]) for name in few})
    assert same_records(fingerprint_of(few), fingerprint_of(again))
    odd, even = (fingerprint_of(few.iloc[start::2]) for start in (0, 1))
    assert not alike(odd.shapes, even.shapes, (odd.records, even.records)).same


@pytest.mark.parametrize("pairs", [10, pytest.param(100, marks=pytest.mark.long)])
def test_unrelated_sources_with_the_same_schema_do_not_match(pairs):
    for seed in range(pairs):
        number = (500, 2000, 5000)[seed % 3]
        one, other = (fingerprint_of(survey(number, 1000 + 2 * seed + i)) for i in (0, 1))
        found = alike(one.shapes, other.shapes, (number, number))
        assert not found.same
        assert found.free < FREE_TOGETHER / 2, "no near miss"


def test_refusal_of_a_recoded_source_names_the_first_release(tmp_path):
    agency, frame = Agency(tmp_path), survey(2000, 4)
    agency.publish(A, fingerprint_of(frame))
    entry = agency.entry(B, fingerprint_of(recoded(frame, 5)), name="people", lake="other")
    with pytest.raises(GateRefused, match=A):
        refuse_conflicts(entry, agency.areas("other"))


def test_tables_of_pairs_are_read_back_unchanged(tmp_path):
    fingerprint = fingerprint_of(survey(500, 1), tasks=3)
    fingerprint.write(tmp_path / FILE)
    read = SourceFingerprint.read(tmp_path / FILE)
    assert read is not None
    assert list(read.shapes) == list(fingerprint.shapes) != []
    assert all((read.shapes[pair] == table).all() for pair, table in fingerprint.shapes.items())
    whole = fingerprint_of(survey(500, 1))
    assert all((whole.shapes[pair] == table).all() for pair, table in fingerprint.shapes.items())


def test_shapes_equal_the_tables_of_pandas_in_the_order_of_their_counts():
    frame = survey(400, 3)
    table = pd.crosstab(frame["sex"], frame["education"]).to_numpy()
    shape = fingerprint_of(frame).shapes["education", "sex"].T
    assert sorted(map(tuple, np.sort(table, axis=1))) == sorted(map(tuple, np.sort(shape, axis=1)))
    assert shape.sum(axis=0).tolist() == sorted(table.sum(axis=0).tolist(), reverse=True)
