"""Tests of nominal algorithms on blocks of key combinations: split, solved, validated, with fallbacks."""

import numpy as np
import pytest
from microguard.pipelines.measures.block_reports import OF_BLOCK
from microguard.pipelines.records import combination_blocks
from microguard.pipelines.records.combination_blocks import Task, cut, solve_task, solved_by_block
from microguard.sdc.errors import InvalidParameter
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import FrequencyVector, collapse
from microguard.sdc.nominal.methods import ProtectionTask
from microguard.sdc.nominal.protected_counts import ProtectedCounts

TABLES = (("a",), ("b",), ("a", "b"))


def frequencies(n: int, seed: int, regions: int = 2) -> FrequencyVector:
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, size, n) for size in (5, 3, 4)])
    names = ("a", "b", "c")
    return collapse(codes, np.array([5, 3, 4]), names, regions=rng.integers(0, regions, n))[0]


def test_blocks_are_consecutive_combinations_of_one_region_with_at_least_k_records_each():
    found = frequencies(500, 1)
    blocks = cut(found, 3, 60)
    assert np.array_equal(np.sort(np.concatenate(blocks)), np.arange(len(found)))
    for members in blocks:
        assert len(np.unique(found.region_of()[members])) == 1
        assert 3 <= found.counts[members].sum() <= 90


def test_key_combination_larger_than_a_block_is_not_split():
    one, _ = collapse(np.zeros((500, 1), int), np.array([1]), ("a",))
    assert [members.tolist() for members in cut(one, 3, 60)] == [[0]]


@pytest.mark.parametrize(
    "algorithm", ["own-hhg", "own-hhe", "chi-exact", "random", "safe-exact", "modified-safe-exact"]
)
def test_every_block_keeps_its_records_and_is_k_anonymous(algorithm):
    part = frequencies(60, 2, regions=1)
    part = FrequencyVector(part.codes, part.counts, part.domain_sizes, part.names)
    counts, report = solve_task(Task(0, part, TABLES, 3, algorithm, seed=4))
    assert counts.sum() == 60
    assert set(counts[counts > 0] >= 3) == {True}
    assert report["algorithm"] == algorithm
    assert "fallback" not in report
    assert 0 < report["lower_bound"] <= report["objective"] + 1e-6
    assert report["bound_of"] == OF_BLOCK


def test_report_of_a_failed_block_names_the_fallback_and_the_reason(monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("a value")

    monkeypatch.setattr(combination_blocks, "protect_counts", broken)
    part = frequencies(60, 2, regions=1)
    part = FrequencyVector(part.codes, part.counts, part.domain_sizes, part.names)
    counts, report = solve_task(Task(0, part, TABLES, 3, "own-hhg", seed=4))
    assert counts.sum() == 60
    assert (report["fallback"], report["why"]) == ("local-search", "RuntimeError")
    assert 0 < report["lower_bound"] <= report["objective"]


@pytest.mark.parametrize(
    "counts", [[4, 1], [4, 2], [9, -3]], ids=["lost records", "below k", "negative count"]
)
def test_counts_of_a_method_below_k_are_replaced_by_a_fallback(monkeypatch, counts):
    wrong = ProtectedCounts(np.array(counts), "work")
    monkeypatch.setattr(combination_blocks, "protect_counts", lambda *_, **__: wrong)
    part = FrequencyVector(np.array([[0], [1]]), np.array([4, 2]), np.array([2]), ("a",))
    counts, report = solve_task(Task(0, part, (("a",),), 3, "own-hhg", seed=4))
    assert counts.tolist() in ([6, 0], [0, 6], [3, 3])
    assert report["why"] == "ArithmeticError"


def test_unsupported_input_of_an_algorithm_ends_the_run_with_its_message(spark):
    file = frequencies(200, 3)
    task = ProtectionTask(file, 3, ControlTables.of(file, TABLES), effort="exact")
    with pytest.raises(InvalidParameter, match="algorithm random does not support effort"):
        solved_by_block(spark, task, "random", 60)


def test_blocks_keep_their_totals_and_the_file_has_a_separate_report(spark):
    file = frequencies(200, 3)
    counts, reports = solved_by_block(
        spark, ProtectionTask(file, 3, ControlTables.of(file, TABLES)), "random", 60
    )
    for members, report in zip(cut(file, 3, 60), reports, strict=False):
        assert counts[members].sum() == file.counts[members].sum() == report["records"]
    assert [report.get("whole_file", False) for report in reports] == [False] * (len(reports) - 1) + [True]
    assert len(reports) == 1 + len(cut(file, 3, 60))
    assert set(counts[counts > 0] >= 3) == {True}
