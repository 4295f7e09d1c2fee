"""What the keys of a specification must be to each other: the checks no single key can make."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import TYPE_CHECKING

from schemas.methods import NOMINAL_ALGORITHMS, NUMERIC_ALGORITHMS, REPRESENTATIVES, algorithms
from schemas.roles import AT_MOST_ONE, NOMINAL_ONLY
from schemas.specification.faults import NOTHING, Fault, Path, fault
from schemas.specification.table_consistency import table_faults

if TYPE_CHECKING:
    from schemas.specification.model import Specification

FREQUENCY = "frequency"
"""Column of the published tables that holds the number of records."""


def inconsistencies(specification: Specification, in_doubt: bool = False) -> list[Fault]:
    """All faults between keys of a specification whose keys are each valid in themselves.

    `in_doubt` says that the role or kind of some variable is not known: checks that rest on them wait.
    """
    checks: list[Callable[[Specification], Iterable[Fault]]] = [_roles, _kinds, _paths, _blocking, _algorithm]
    if not in_doubt:
        checks += [
            _methods,
            _groups,
            _control_tables,
            _counted,
            _unheeded,
            _gate,
            _diversity,
            _dependencies,
            table_faults,
        ]
    return [found for check in checks for found in check(specification)]


def _roles(spec: Specification) -> Iterator[Fault]:
    for role in AT_MOST_ONE:
        names = spec.with_role(role)
        if len(names) > 1:
            yield fault(("variables",), list(names), f"at most one variable of role {role}")


def _kinds(spec: Specification) -> Iterator[Fault]:
    for name, variable in spec.variables.items():
        key: Path = ("variables", name, "kind")
        if variable.role == "quasi_identifier" and variable.kind is None:
            yield fault(key, NOTHING, "nominal, numeric; a quasi-identifier must say which")
        elif variable.role in NOMINAL_ONLY and variable.kind == "numeric":
            yield fault(key, "numeric", f"nominal, or no kind: a {variable.role} is a name")
        elif variable.role == "weight" and variable.kind == "nominal":
            yield fault(key, "nominal", "numeric, or no kind: a weight is a number")


def _paths(spec: Specification) -> Iterator[Fault]:
    public, evidence, source = map(_real, (spec.public_area, spec.evidence_area, spec.input_path))
    if _inside(evidence, public):
        yield fault(("publish", "evidence"), spec.publish.evidence, "a place outside the public area")
    if _inside(source, public):
        yield fault(("input", "path"), spec.input.path, "a place outside the public area")
    for key, place in (("path", public), ("evidence", evidence)):
        if place != source and _inside(place, source):
            yield fault(("publish", key), getattr(spec.publish, key), "a place outside the input folder")
    suffix = spec.input.path.lower().removesuffix(".gz").rpartition(".")[2]
    if suffix in ("csv", "tsv", "txt", "parquet") and (suffix == "parquet") != (
        spec.input.format == "parquet"
    ):
        allowed = "csv" if spec.input.format == "parquet" else "parquet"
        yield fault(("input", "format"), spec.input.format, f"{allowed}, as input.path ends in .{suffix}")


def _real(path: str) -> str:
    return path.rstrip("/") if "://" in path else os.path.realpath(path)


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _blocking(spec: Specification) -> Iterator[Fault]:
    least = 2 * spec.release.k
    if spec.blocking.max_records != "auto" and spec.blocking.max_records < least:
        yield fault(
            ("blocking", "max_records"), spec.blocking.max_records, f'"auto" or at least 2k = {least}'
        )


def _algorithm(spec: Specification) -> Iterator[Fault]:
    """A name that no kind of quasi-identifiers knows."""
    name = spec.method.algorithm
    names = dict.fromkeys(algorithms(spec.method.name, "nominal") + algorithms(spec.method.name, "numeric"))
    if name not in names:
        yield fault(("method", "algorithm"), name, ", ".join(names), choices=names)


def _methods(spec: Specification) -> Iterator[Fault]:
    if not spec.quasi_identifiers:
        if spec.table is not None:
            return
        yield fault(("variables",), NOTHING, "at least one variable of role quasi_identifier")
        return
    if any(spec.variables[name].kind is None for name in spec.quasi_identifiers):
        return
    method = spec.method
    if method.name == "safe" and spec.numeric:
        yield fault(
            ("method", "name"), "safe", "microaggregation, as SAFE takes nominal quasi-identifiers only"
        )
        return
    for clustering in spec.clusterings:
        variables = tuple(name for name in clustering.variables if name in spec.quasi_identifiers)
        if not variables:
            continue
        kinds = spec.kinds(variables)
        of = f" for {kinds} quasi-identifiers" + (f" (group {clustering.name})" if spec.groups else "")
        names = algorithms(method.name, kinds)
        if method.algorithm not in names and not list(_algorithm(spec)):
            yield fault(("method", "algorithm"), method.algorithm, ", ".join(names) + of)
        legal = ("auto",) if method.name == "safe" else REPRESENTATIVES[kinds]
        if method.representative not in legal:
            of = " with SAFE" if method.name == "safe" else of
            yield fault(("method", "representative"), method.representative, ", ".join(legal) + of)
    if method.unit == "household" and spec.household is None:
        yield fault(("method", "unit"), "household", "record, as no variable has the role household")


def _unheeded(spec: Specification) -> Iterator[Fault]:
    """Values that the method asked for would not heed: what is not carried out is refused, never ignored."""
    method = spec.method
    clustered = False  # whether something is asked for that needs clusters of records
    for key, value, plain, other in (
        ("min_diversity", method.min_diversity, 1, "min_diversity above 1"),
        ("unit", method.unit, "record", "unit household"),
    ):
        if value == plain:
            continue
        clustered = True
        if method.name == "safe":
            yield fault(("method", key), value, f"{plain} with SAFE, which has no clusters")
        if method.representative == "control_tables":
            allowed = f"auto, mode, medoid with {other}, which needs clusters"
            yield fault(("method", "representative"), "control_tables", allowed)
        if method.algorithm in NOMINAL_ALGORITHMS and method.algorithm not in NUMERIC_ALGORITHMS:
            allowed = f"auto, local-search with {other}, which needs clusters"
            yield fault(("method", "algorithm"), method.algorithm, allowed)
    bounds = method.control_tables.max_absolute_error
    searching = method.name == "microaggregation" and method.algorithm in ("auto", "local-search")
    on_tables = method.representative in ("auto", "control_tables") and not clustered
    if bounds is not None and not (searching and on_tables):
        allowed = (
            "no such key, as only a search on control tables heeds it (algorithm auto or local-search, "
            "representative auto or control_tables, min_diversity 1, unit record)"
        )
        yield fault(("method", "control_tables", "max_absolute_error"), _keys(bounds), allowed)


def _groups(spec: Specification) -> Iterator[Fault]:
    placed: dict[str, str] = {}
    for number, group in enumerate(spec.groups):
        if group.name in [earlier.name for earlier in spec.groups[:number]]:
            yield fault(("groups", number, "name"), group.name, "a name no other group has")
        for name in group.variables:
            key: Path = ("groups", number, "variables")
            if name not in spec.quasi_identifiers:
                choices = spec.quasi_identifiers
                yield fault(key, name, f"quasi-identifiers ({', '.join(choices)})", choices=choices)
            elif name in placed:
                yield fault(key, name, f"each variable once; it is in group {placed[name]} already")
            placed.setdefault(name, group.name)
    left = [name for name in spec.quasi_identifiers if name not in placed]
    if spec.groups and left:
        yield fault(("groups",), f"no group with {', '.join(left)}", "every quasi-identifier in one group")


def _control_tables(spec: Specification) -> Iterator[Fault]:
    chosen = spec.method.control_tables
    key: Path = ("method", "control_tables")
    if chosen.tables is not None:
        if chosen.max_dimension is not None:
            yield fault((*key, "max_dimension"), chosen.max_dimension, "not together with tables")
        yield from _tables(spec, chosen.tables, (*key, "tables"))
    elif chosen.max_dimension is not None:
        most = max(2, len(spec.nominal))
        if chosen.max_dimension > most:
            yield fault(
                (*key, "max_dimension"),
                chosen.max_dimension,
                f"1 to {most} with {len(spec.nominal)} nominal quasi-identifier(s)",
            )
    if chosen.max_absolute_error is not None:
        yield from _bounds(spec, chosen.max_absolute_error, (*key, "max_absolute_error"))


def _counted(spec: Specification) -> Iterator[Fault]:
    if FREQUENCY in spec.nominal:
        allowed = "another name in the file, as the published tables count records in a column of this name"
        yield fault(("variables", FREQUENCY), FREQUENCY, allowed)


def _tables(spec: Specification, tables: tuple[tuple[str, ...], ...], key: Path) -> Iterator[Fault]:
    if not tables:
        yield fault(key, [], "at least one table, or no such key")
    group_of = {name: group.name for group in spec.groups for name in group.variables}
    for table in tables:
        if not table:
            yield fault(key, [], "tables with at least one variable each")
        for name in table:
            if name not in spec.nominal:
                allowed = ", ".join(spec.nominal) or "none, as no quasi-identifier is nominal"
                yield fault(key, name, f"nominal quasi-identifiers: {allowed}", choices=spec.nominal)
        if len(set(table)) < len(table):
            yield fault(key, list(table), "each variable once in a table")
        if len({group_of.get(name) for name in table}) > 1:
            yield fault(key, list(table), "variables of one group; tables never cross groups")
    for one, other in combinations(tables, 2):
        if one and set(one) == set(other):
            yield fault(key, list(other), "each table once")


def _bounds(spec: Specification, bounds: dict[int, float], key: Path) -> Iterator[Fault]:
    """Bounds by dimension need tables of that dimension (max_dimension is taken as it is declared)."""
    chosen = spec.method.control_tables
    if not spec.nominal:
        yield fault(key, _keys(bounds), "no such key, as no quasi-identifier is nominal: no control tables")
        return
    if chosen.tables is not None:
        dimensions = sorted({len(table) for table in chosen.tables})
    else:
        dimensions = list(range(1, (chosen.max_dimension or 2) + 1))
    wrong = [dimension for dimension in bounds if dimension not in dimensions]
    if wrong:
        allowed = f"dimensions of the control tables: {', '.join(map(str, dimensions))}"
        yield fault(key, f"dimension {', '.join(map(str, wrong))}", allowed)


def _keys(bounds: dict[int, float]) -> dict[str, float]:
    return {str(dimension): bound for dimension, bound in bounds.items()}


def _gate(spec: Specification) -> Iterator[Fault]:
    quality = spec.quality
    for name, needed, kind in (
        ("max_information_loss", spec.numeric, "numeric"),
        ("dominance", spec.numeric, "numeric"),
        ("max_chi2_per_cell", spec.nominal, "nominal"),
    ):
        value = getattr(quality, name)
        if value is not None and not needed:
            found = value.model_dump() if name == "dominance" else value
            yield fault(("quality", name), found, f"no such key, as no quasi-identifier is {kind}")
    if quality.max_absolute_error is not None:
        yield from _bounds(spec, quality.max_absolute_error, ("quality", "max_absolute_error"))


def _diversity(spec: Specification) -> Iterator[Fault]:
    key: Path = ("method", "min_diversity")
    if spec.method.min_diversity > 1 and not spec.sensitive:
        yield fault(key, spec.method.min_diversity, "1, as no variable has the role sensitive")


def _dependencies(spec: Specification) -> Iterator[Fault]:
    columns = spec.published_as_it_is
    for name in spec.publish.accept_dependencies:
        if name not in columns:
            allowed = f"columns published as they are ({', '.join(columns) or 'none'})"
            yield fault(("publish", "accept_dependencies"), name, allowed, choices=columns)
