"""What a series of releases needs of a specification: where its rule cannot hold, it is refused by name."""

from __future__ import annotations

from collections.abc import Iterator

from schemas.specification.faults import NOTHING, Fault, fault
from schemas.specification.model import Specification


def series_faults(spec: Specification) -> Iterator[Fault]:
    """Keys that a series cannot carry, and keys of a series where there is none."""
    alone = spec.publish.series == "single" and spec.publish.successive == "refuse"
    if alone and spec.publish.keep is not None:
        allowed = 'no such key, unless [publish] series is not "single" or successive = "accept"'
        yield fault(("publish", "keep"), spec.publish.keep, allowed)
    if spec.publish.series == "append":
        yield from _append_faults(spec)
    if spec.publish.series != "register":
        for name in sorted(spec.series.model_fields_set):
            allowed = 'no such key, unless [publish] series = "register"'
            yield fault(("series", name), getattr(spec.series, name), allowed)
        if spec.publish.changes != "keep":
            allowed = 'keep, unless [publish] series = "register"'
            yield fault(("publish", "changes"), spec.publish.changes, allowed)
        return
    if spec.unit is None:
        needed = "a variable of role unit: a register must know its units again from night to night"
        yield fault(("variables",), NOTHING, needed)
    if spec.method.unit != "record":
        allowed = "record in a register: classes of several units' records would not leave whole"
        yield fault(("method", "unit"), spec.method.unit, allowed)
    if spec.method.name != "microaggregation":
        allowed = "microaggregation in a register: counts of combinations make no classes that stand"
        yield fault(("method", "name"), spec.method.name, allowed)
    nominal = spec.quasi_identifiers and spec.kinds() == "nominal"
    if nominal and spec.method.algorithm != "auto":
        allowed = "auto in a register of nominal variables, which is protected by cluster"
        yield fault(("method", "algorithm"), spec.method.algorithm, allowed)
    if nominal and spec.method.representative == "control_tables":
        allowed = "auto, mode or medoid in a register, whose classes are clusters"
        yield fault(("method", "representative"), spec.method.representative, allowed)
    if spec.groups:
        allowed = "no groups in a register: classes of two groups would not leave together"
        yield fault(("groups",), spec.groups[0].name, allowed)
    if spec.publish.approval != "none":
        allowed = "none in a register: tomorrow's night goes on from what is published"
        yield fault(("publish", "approval"), spec.publish.approval, allowed)
    if spec.series.pool is not None and spec.series.pool < spec.release.k:
        yield fault(("series", "pool"), spec.series.pool, f"at least k = {spec.release.k}")


def _append_faults(spec: Specification) -> Iterator[Fault]:
    if spec.unit is None:
        needed = "a variable of role unit: what was published before is known by its unit"
        yield fault(("variables",), NOTHING, needed)
    if spec.method.unit == "unit":
        allowed = "record or household where nights are appended: a unit has one record in one night"
        yield fault(("method", "unit"), spec.method.unit, allowed)
    if spec.method.name != "microaggregation":
        allowed = "microaggregation where nights are appended: SAFE's records are not those of their units"
        yield fault(("method", "name"), spec.method.name, allowed)
    if spec.publish.approval != "none":
        allowed = "none where nights are appended: tomorrow must know what is published"
        yield fault(("publish", "approval"), spec.publish.approval, allowed)
    if spec.publish.format != "parquet":
        allowed = "parquet where nights are appended: a table would hold the newest night alone"
        yield fault(("publish", "format"), spec.publish.format, allowed)
