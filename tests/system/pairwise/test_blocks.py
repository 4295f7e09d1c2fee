"""Tests that block functions meet the guarantees for every pair of settings of a specification."""

from __future__ import annotations

import pytest
from microguard.schemas.specification.read import build_specification
from microguard.sdc.microaggregation.local_search.work import WORK
from microguard.sdc.nominal.frequency_search import search

from tests.system.pairwise.blocks import ROW, accepted_table, protected_records
from tests.system.pairwise.covering import all_pairs, pairs_of
from tests.system.pairwise.jobs import FACTORS, PairwiseJob
from tests.system.pairwise.promise import broken
from tests.system.pairwise.table import accepts, read_refused, read_rows

JOBS = [PairwiseJob(row) for row in read_rows()]


@pytest.fixture
def _short_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit the searches of the higher efforts to the work of lower ones, because guarantees must hold
    wherever a search stops. `tests/sdc` runs the efforts with all their work.
    """
    monkeypatch.setitem(WORK, "thorough", WORK["standard"])
    monkeypatch.setattr(search, "_MOVES", dict.fromkeys(search._MOVES, search._MOVES["fast"]))


def test_pairwise_jobs_cover_every_valid_pair_of_settings():
    covered = set().union(*(pairs_of(job.row) for job in JOBS))
    missing = set(all_pairs(FACTORS)) - covered - set(read_refused())
    assert not missing, "compute the table again: python -m tests.system.pairwise.table"


def test_refused_pair_is_also_refused_with_plain_settings():
    plain = {factor: values[0] for factor, values in FACTORS.items()}
    accepted = [pair for pair in read_refused() if accepts(plain | dict(pair))]
    assert not accepted, "compute the table again: python -m tests.system.pairwise.table"


@pytest.mark.usefixtures("_short_searches")
@pytest.mark.parametrize("job", JOBS, ids=[f"{number}: {job}" for number, job in enumerate(JOBS)])
def test_block_functions_meet_the_guarantees_of_every_job(job, tmp_path):
    job.write(tmp_path)
    specification = build_specification(job.content, tmp_path)
    release, reports = protected_records(accepted_table(job, specification), specification, tmp_path)
    original = job.accepted.drop(columns="name")
    original[ROW] = range(len(original))
    assert not list(broken(job, release, original, ROW))
    assert not [each for part in reports for each in part.blocks if each.get("fallback")]
