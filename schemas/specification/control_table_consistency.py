"""Checks of `[method.control_tables]` and of bounds by table dimension."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from microguard.schemas.specification.faults import Fault, Path, by_dimension, fault
from microguard.schemas.specification.model import DEFAULT_DIMENSION, Specification

KEY: Path = ("method", "control_tables")


def control_table_faults(spec: Specification) -> Iterator[Fault]:
    """Return the faults of the section, and of the gate's bounds by table dimension."""
    chosen = spec.method.control_tables
    if chosen.tables is not None:
        if chosen.max_dimension is not None:
            yield fault((*KEY, "max_dimension"), chosen.max_dimension, "not together with tables")
        yield from _tables(spec, chosen.tables)
    elif chosen.max_dimension is not None:
        most = max(DEFAULT_DIMENSION, len(spec.nominal))
        if chosen.max_dimension > most:
            allowed = f"1 to {most} with {len(spec.nominal)} nominal quasi-identifier(s)"
            yield fault((*KEY, "max_dimension"), chosen.max_dimension, allowed)
    for key, bounds in (
        ((*KEY, "max_absolute_error"), chosen.max_absolute_error),
        (("quality", "max_absolute_error"), spec.quality.max_absolute_error),
        (("quality", "max_vanished"), spec.quality.max_vanished),
    ):
        if bounds is not None:
            yield from _bounds(spec, bounds, key)
    yield from _kept(spec)


def _kept(spec: Specification) -> Iterator[Fault]:
    """Return the fault of a `kept_dimension` that is smaller than the dimension of every control table."""
    most = spec.method.control_tables.kept_dimension
    if not most or not spec.quasi_identifiers:
        return
    for group in spec.clusterings:
        names = {name for name in group.variables if name in spec.nominal}
        tables = [set(table) - {spec.region} for table in spec.control_tables if names & set(table)]
        if names and min(map(len, tables), default=most + 1) > most:
            of = f" of group {group.name}" if spec.groups else ""
            allowed = f"0, or at least the dimension of a control table{of}"
            yield fault((*KEY, "kept_dimension"), most, allowed)


def _tables(spec: Specification, tables: tuple[tuple[str, ...], ...]) -> Iterator[Fault]:
    key: Path = (*KEY, "tables")
    if not tables:
        yield fault(key, [], "at least one table; otherwise remove the key")
    group_of = {name: group.name for group in spec.groups for name in group.variables}
    for table in tables:
        variables = [name for name in table if name != spec.region]
        if not variables:
            yield fault(key, list(table), "tables with at least one quasi-identifier each")
        for name in variables:
            if name not in spec.nominal:
                allowed = ", ".join(spec.nominal) or "none, because no quasi-identifier is nominal"
                yield fault(key, name, f"nominal quasi-identifiers: {allowed}", choices=spec.nominal)
        if len(set(table)) < len(table):
            yield fault(key, list(table), "each variable once in a table")
        if len({group_of.get(name) for name in variables}) > 1:
            yield fault(
                key,
                list(table),
                ("variables of one group; tables cannot combine variables of several groups"),
            )
    for one, other in combinations(tables, 2):
        if one and set(one) == set(other):
            yield fault(key, list(other), "each table once")


def _bounds(spec: Specification, bounds: dict[int, float], key: Path) -> Iterator[Fault]:
    """Return the faults of bounds for dimensions that no control table has (`max_dimension` counts as
    stated).
    """
    chosen = spec.method.control_tables
    if not spec.nominal:
        allowed = "not applicable, because without nominal quasi-identifiers there are no control tables"
        yield fault(key, by_dimension(bounds), allowed)
        return
    if chosen.tables is not None:
        dimensions = sorted({len(table) - (spec.region in table) for table in chosen.tables})
    else:
        dimensions = list(range(1, (chosen.max_dimension or DEFAULT_DIMENSION) + 1))
    wrong = [dimension for dimension in bounds if dimension not in dimensions]
    if wrong:
        allowed = f"dimensions of the control tables: {', '.join(map(str, dimensions))}"
        yield fault(key, f"dimension {', '.join(map(str, wrong))}", allowed)
