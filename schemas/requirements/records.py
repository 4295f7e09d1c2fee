"""Requirements on the input and the release, derived from the specification: limits on named metrics.

A metric is a number computed in Spark, in one aggregation: a count, a share, an error. A metric never
contains a value of a record. The pipelines compute the required metrics and pass them by key.
`pipelines.gate.suite` converts the requirements to expectations of Great Expectations.

Metrics of the input (`input_requirements`); a *kept* record is one that is not rejected:

| metric | variable | what it counts |
|---|---|---|
| present | each declared column | 1 if the file has it, otherwise 0 |
| type_fits | each declared column except identifiers | 1 if its type fits role and kind, otherwise 0 |
| records_kept | - | records kept |
| records_rejected | - | records rejected, each once |
| missing | quasi-identifiers of a kind to be rejected; unit, household, region, weight | records without it |
| not_finite | numeric quasi-identifiers, weight | records with an infinity or NaN there |
| not_positive | weight | records with a weight of zero or below |
| repeated | unit, if k does not count units | records whose unit occurs more than once |
| smallest_region | region, or "" if there is none | kept units (what k counts) of the smallest region |
| patterns_below_k | each numeric quasi-identifier | missing patterns of a region with it, below k units |
| complete_below_k | - | regions in which some kept units, but fewer than k, have no missing number |
| domain | nominal quasi-identifiers | distinct values among kept records |

Metrics of every release of records (`integrity_requirements`). The guarantees of a release are in
`pipelines.guarantees`, one file per guarantee. The limits of `[quality]` are in `pipelines.measures`, next to
the measures that they limit.

| metric | variable | what it is |
|---|---|---|
| records_unaccounted | - | absolute value of n in - rejected - suppressed - n out |
| content_as_staged | - | 1 if the written files contain exactly the protected records |
| columns_as_declared | - | 1 if every written file has the columns and types of the input |
| derived_contradicted | - | records whose derived columns differ from what `[derived]` computes |
| others_as_read | - | 1 if the columns published unchanged contain the input's values, record by record |

Metrics of all releases of a source together, in a series, are named ``joint_`` followed by a name in `JOINT`.
"""

from __future__ import annotations

from collections.abc import Iterator

from microguard.schemas.method_registry import method_row
from microguard.schemas.requirements.requirement import BROKEN, MetricKey, Requirement, quoted
from microguard.schemas.specification.model import Specification

LARGEST_DOMAIN = 100_000
"""Maximum number of categories of a nominal quasi-identifier: more than any country has municipalities, but
fewer than there are names."""


JOINT = (
    "below_k",
    "determined_values",
    "determined_sums",
    "close_totals",
    "one_value",
    "cells",
    "not_compared",
)
"""Counts of the joint audit of a source, each of which is a metric ``joint_<name>``."""


def input_requirements(specification: Specification) -> tuple[Requirement, ...]:
    """Return the requirements on the input that must be met before records are protected."""
    return (*_columns(specification), *_records(specification), *_regions(specification))


def integrity_requirements() -> tuple[Requirement, ...]:
    """Return the requirements on the written files that apply to every guarantee: they contain the protected
    records.
    """
    altered = (
        "the staged files differ from the protected records: check for another writer or a faulty disk, "
        "and run this again"
    )
    return (
        Requirement(MetricKey("records_unaccounted"), BROKEN, at_most=0, promised=True),
        Requirement(MetricKey("content_as_staged"), altered, at_least=1, promised=True),
        Requirement(MetricKey("columns_as_declared"), altered, at_least=1, promised=True),
        Requirement(MetricKey("others_as_read"), BROKEN, at_least=1, promised=True),
    )


def derived_requirement() -> Requirement:
    """Return the requirement on the written files if the release has derived columns.

    This requirement is not a guarantee: `microguard verify` does not check it.
    """
    return Requirement(MetricKey("derived_contradicted"), BROKEN, at_most=0, promised=True)


def joint_requirements(collisions: tuple[str, ...]) -> Iterator[Requirement]:
    """Return the requirements that all releases of a source together expose no unit.

    Parameters
    ----------
    collisions : tuple of str
        Ids of the releases that expose units if the new release is published too.
    """
    with_whom = f" (with {', '.join(collisions)})" if collisions else ""
    remedy = (
        f"all releases of this source together expose these units{with_whom}: publish another period, or set "
        'publish.successive to "accept" if a steward has decided that all of them may be published'
    )
    for name in JOINT:
        line = '[publish] successive = "accept"'
        yield Requirement(MetricKey(f"joint_{name}"), remedy, at_most=0, line=line)


def _columns(spec: Specification) -> Iterator[Requirement]:
    for name, variable in spec.variables.items():
        yield Requirement(MetricKey("present", name), "correct [variables] or the file", at_least=1)
        if variable.role != "identifier":
            remedy = "correct its role or kind in [variables]; a numeric variable needs numbers"
            yield Requirement(MetricKey("type_fits", name), remedy, at_least=1)


def _records(spec: Specification) -> Iterator[Requirement]:
    k, most = spec.release.k, spec.missing.max_rejected
    few = f"k = {k} needs at least {k} records: mend those that are rejected"
    yield Requirement(MetricKey("records_kept"), few, at_least=k)
    mend = "mend the records, or raise missing.max_rejected"
    line = "[missing] max_rejected = {found}"
    yield Requirement(MetricKey("records_rejected"), mend, at_most=most, line=line)
    for name in _must_not_be_missing(spec):
        yield Requirement(MetricKey("missing", name), mend, at_most=most)
    for name in (*spec.numeric, *spec.with_role("weight")):
        yield Requirement(MetricKey("not_finite", name), mend, at_most=most)
    if spec.weight is not None:
        yield Requirement(MetricKey("not_positive", spec.weight), mend, at_most=most)
    for name in spec.with_role("unit") if spec.method.unit != "unit" else ():
        remedy, line = "keep one record of each unit", ""
        if "unit" in method_row("records", spec.method.name).keys and spec.publish.series == "single":
            remedy += ', or set method.unit to "unit", which lets k count them'
            line = '[method] unit = "unit"'
        yield Requirement(MetricKey("repeated", name), remedy, at_most=most, line=line)
    for name in spec.nominal:
        remedy = (
            "declare it numeric, or recode it to fewer categories: a nominal variable cannot have this many"
        )
        line = f'[variables] {quoted(name)} = {{ role = "quasi_identifier", kind = "numeric" }}'
        yield Requirement(MetricKey("domain", name), remedy, at_least=1, at_most=LARGEST_DOMAIN, line=line)


def _must_not_be_missing(spec: Specification) -> tuple[str, ...]:
    nominal = spec.nominal if spec.missing.nominal == "reject" else ()
    numeric = spec.numeric if spec.missing.numeric == "reject" else ()
    weight = () if spec.weight is None else (spec.weight,)
    return (*nominal, *numeric, *spec.with_role("unit", "household", "region"), *weight)


def _regions(spec: Specification) -> Iterator[Requirement]:
    k, units = spec.release.k, f"{spec.method.unit}s"
    if spec.publish.series == "register":  # units of a region with too few units are published later
        return
    if spec.region is None:
        yield Requirement(MetricKey("smallest_region"), f"k = {k} needs at least {k} {units}", at_least=k)
    elif spec.blocking.small_regions == "fail":
        remedy = 'set blocking.small_regions to "suppress", or merge regions before the run'
        line = '[blocking] small_regions = "suppress"'
        yield Requirement(MetricKey("smallest_region", spec.region), remedy, at_least=k, line=line)
    if spec.missing.numeric == "own_cluster" and spec.numeric:
        mend = 'set missing.numeric to "reject", or fill in the missing values before the run'
        rare = (
            f"fewer than k = {k} {units} of a region, including these, have the same missing numbers; {mend}"
        )
        line = '[missing] numeric = "reject"'
        for name in spec.numeric:
            yield Requirement(MetricKey("patterns_below_k", name), rare, at_most=0, line=line)
        whole = f"fewer than k = {k} {units} of a region have no missing numbers; {mend}"
        yield Requirement(MetricKey("complete_below_k"), whole, at_most=0, line=line)
