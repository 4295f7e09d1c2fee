"""Tests that each guarantee is counted in code: refusals of the registry, and statements of manifests."""

from __future__ import annotations

import dataclasses

import duckdb
import pytest
from microguard.pipelines.guarantees.additive_table import AdditiveTable
from microguard.pipelines.guarantees.bounded_noise import BoundedNoise
from microguard.pipelines.guarantees.guarantee import Count, Guarantee, unmet
from microguard.pipelines.guarantees.k_anonymity import SHOWN, Group, KAnonymity
from microguard.pipelines.guarantees.l_diversity import LDiversity
from microguard.pipelines.guarantees.measured_only import MeasuredOnly
from microguard.pipelines.guarantees.noisy_amounts import NoisyAmounts
from microguard.pipelines.guarantees.registry import (
    GUARANTEES,
    UnknownGuarantee,
    guarantees_in,
    promised,
    require_stated,
)
from microguard.pipelines.guarantees.rounded_table import RoundedTable
from microguard.pipelines.guarantees.small_counts import SmallCounts
from microguard.pipelines.guarantees.suppressed_table import SuppressedTable
from microguard.schemas.errors import ProtectionFailed

GROUPS = (Group("all", ("sex",), ("region",)),)
FACTS = {"all": {"smallest_class": 3, "median_class": 3.0, "classes": 2}}
COLUMNS = [{"name": "sex", "role": "quasi_identifier"}, {"name": "illness", "role": "sensitive"}]
TABLE = {"content": "table"}
#: Each guarantee with further content of its manifest.
EXAMPLES: list[tuple[Guarantee, dict]] = [
    (KAnonymity(3, "household", GROUPS, jointly=True), {"columns": COLUMNS, "method": {"min_diversity": 1}}),
    (MeasuredOnly(("sex",)), {"columns": COLUMNS, "method": {"name": "swapping"}}),
    (AdditiveTable(), TABLE),
    (AdditiveTable(drawn_counts=True, preserved={"mean": 0.0}), TABLE),
    (RoundedTable(5), TABLE),
    (SmallCounts(5), TABLE),
    (BoundedNoise(5, 2.0, 3), TABLE),
    (NoisyAmounts(5.0, 8.0, 0.3, 0.03, 1000.0, 3.0, (1.0, 0.5), 4.2), TABLE),
    (SuppressedTable(), TABLE),
]


def stated(guarantee: Guarantee, rest: dict) -> dict:
    return rest | dict(guarantee.manifest(Count({}, {**FACTS, "cells": 4})))


@pytest.mark.parametrize(("guarantee", "rest"), EXAMPLES, ids=lambda each: getattr(each, "name", ""))
def test_verify_reads_the_guarantee_from_the_manifest_that_states_it(guarantee, rest):
    manifest = stated(guarantee, rest)
    (read,) = guarantees_in(manifest)
    assert (read.name, read.statement) == (guarantee.name, guarantee.statement)
    assert read.requirements() == guarantee.requirements()
    require_stated(manifest, [guarantee])


def test_diversity_is_read_from_the_method_and_the_sensitive_columns():
    anonymous = KAnonymity(3, "record", GROUPS, jointly=True)
    diverse = LDiversity(2, ("illness",), GROUPS)
    manifest = stated(anonymous, {"columns": COLUMNS, "method": {"min_diversity": 2}})
    assert guarantees_in(manifest) == (anonymous, diverse)
    of_register = LDiversity(2, ("illness",), GROUPS, withholds=True)
    assert guarantees_in(manifest | {"series": {"kind": "register"}}) == (anonymous, of_register)
    assert len(of_register.limits) == 2
    with pytest.raises(ProtectionFailed, match="promises in the manifest differ"):
        require_stated(manifest, [anonymous])


def test_every_guarantee_is_registered_requires_a_metric_and_states_its_promise():
    examples = [guarantee for guarantee, _ in EXAMPLES] + [LDiversity(2, ("illness",), GROUPS)]
    assert {each.name for each in examples} == set(GUARANTEES)
    for each in examples:
        assert each.statement
        assert all(limit == limit.strip() and limit.endswith(".") for limit in each.limits), each.limits
        assert all(requirement.promised for requirement in promised([each]))
        assert unmet(each.requirements(), Count({})) == list(each.requirements())


@pytest.mark.parametrize(
    ("missing", "sentence"),
    [
        ("category", "is shared by at least k = 3 records"),
        ("any_value", "shown by at least k = 3 records; a missing value matches any value"),
    ],
)
def test_statement_of_k_anonymity_names_how_missing_values_count(missing, sentence):
    guarantee = KAnonymity(3, "record", GROUPS, jointly=True, missing=missing)
    assert sentence in guarantee.statement
    assert (SHOWN in guarantee.limits) == (missing == "any_value")


#: Values of cells, and those that each guarantee refuses; None is a cell without a value.
VALUES = (None, -10.0, -5.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 10.0)


@pytest.mark.parametrize(
    ("guarantee", "refused"),
    [
        (AdditiveTable(), {None}),
        (RoundedTable(5), {None, -1.0, 1.0, 2.0, 3.0, 4.0, 6.0}),
        (SmallCounts(5), {None, -10.0, -5.0, -1.0, 1.0, 2.0, 3.0, 4.0}),
        (BoundedNoise(5, 2.0, 3), {None, -10.0, -5.0, -1.0, 1.0, 2.0}),
        (SuppressedTable(), set()),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_table_guarantee_refuses_exactly_the_values_that_it_does_not_allow(guarantee, refused):
    listed = ", ".join("(NULL)" if each is None else f"({each})" for each in VALUES)
    query = f"SELECT v FROM (VALUES {listed}) AS cells(v) WHERE {guarantee.forbidden}"
    assert {row[0] for row in duckdb.sql(query).fetchall()} == refused


@pytest.mark.parametrize(
    "manifest",
    [
        {"content": "table", "method": {"name": "rounding to even"}, "guarantee": "Nothing leaks."},
        {"content": "table", "guarantee": "Nothing leaks."},
        {"method": {"name": "magic"}, "guarantee": "Nothing leaks.", "columns": []},
        {"method": {"name": "magic"}, "guarantee": {"name": "perfect secrecy"}, "columns": []},
        {},
    ],
)
def test_guarantee_that_no_code_counts_is_refused(manifest):
    with pytest.raises(UnknownGuarantee):
        guarantees_in(manifest)
    with pytest.raises(ProtectionFailed, match="could not be verified"):
        require_stated(manifest, [AdditiveTable()])


def test_method_with_the_guarantee_of_another_method_is_refused():
    suppressed = stated(AdditiveTable(), TABLE)
    with pytest.raises(ProtectionFailed, match="promises in the manifest differ"):
        require_stated(suppressed, [SuppressedTable()])
    lower = KAnonymity(2, "record", GROUPS, jointly=True)
    manifest = stated(dataclasses.replace(lower, k=3), {"columns": COLUMNS})
    with pytest.raises(ProtectionFailed, match="promises in the manifest differ"):
        require_stated(manifest, [lower])


class NothingRequired(AdditiveTable):
    """A broken plug-in that states a guarantee and requires no metric."""

    def requirements(self):
        return ()

    def private_requirements(self):
        return ()


class NothingCounted(AdditiveTable):
    """A broken plug-in that requires a metric and counts nothing."""

    def count(self, files):
        return Count({})


class CountedByItself(AdditiveTable):
    """A broken plug-in whose counts do not depend on the files."""

    def count(self, files):
        return Count({each.key: 0.0 for each in (*self.requirements(), *self.private_requirements())})


def test_plug_in_that_requires_or_counts_nothing_cannot_publish():
    broken = (
        [NothingRequired()],
        [AdditiveTable(), NothingRequired()],
        [NothingCounted()],
        [CountedByItself()],
    )
    for guarantees in ([], *broken):
        with pytest.raises(ProtectionFailed, match="verified by a count"):
            promised(guarantees)
    with pytest.raises(ProtectionFailed, match="promises in the manifest differ"):
        require_stated(stated(NothingRequired(), TABLE), [NothingRequired()])
    required = promised([AdditiveTable()])
    assert unmet(required, NothingCounted().count(None)) == required
