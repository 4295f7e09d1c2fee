"""Check whether the method supports the quasi-identifiers and the other keys of `[method]`.

A key that the method would not use is refused instead of ignored.
"""

from __future__ import annotations

from collections.abc import Iterator

from microguard.schemas.errors import SpecificationError
from microguard.schemas.method_registry import MethodRow, method_names, method_row
from microguard.schemas.methods import (
    BY_CONTROL_TABLES,
    REPRESENTATIVES,
    SAFE,
    STRATEGIES,
    Kinds,
    Strategy,
    algorithms,
    all_algorithms,
    efforts,
)
from microguard.schemas.specification.faults import NOTHING, Fault, by_dimension, fault, shown_value
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.parameters import method_parameter_faults
from microguard.schemas.specification.sections import Group, Method
from microguard.sdc.algorithms.parameters import Variables

OF_CLUSTERINGS = ("algorithm", "effort", "representative", "unit", "min_diversity", "weighted")
"""Keys of `[method]` that not every method uses, next to the sections of algorithms."""


def algorithm_faults(spec: Specification) -> Iterator[Fault]:
    """Refuse methods that are not installed or unusable, keys that the method ignores, and unknown
    algorithms.
    """
    method, names = spec.method, method_names("records")
    if method.name not in names:
        yield fault(("method", "name"), method.name, ", ".join(names), choices=names)
        return
    try:
        row = method_row("records", method.name)
    except SpecificationError as error:
        yield Fault(("method", "name"), str(error).removesuffix("."))
        return
    of_parameters = method_parameter_faults(row, method.parameters, "method")
    yield from of_parameters
    yield from _unheeded(spec, row)
    if not of_parameters:
        yield from _unfit(spec, row)
    if method.name not in STRATEGIES:
        for key in method.sections:
            yield fault(("method", key), NOTHING, f"no such section with method {row.name}")
    elif method.algorithm not in all_algorithms(method.name):
        known = all_algorithms(method.name)
        yield fault(("method", "algorithm"), method.algorithm, ", ".join(known), choices=known)


def _unheeded(spec: Specification, row: MethodRow) -> Iterator[Fault]:
    """Refuse keys of `[method]` and kinds of quasi-identifiers that the method does not support."""
    for key in OF_CLUSTERINGS:
        value, default = getattr(spec.method, key), Method.model_fields[key].default
        if key not in row.keys and value != default:
            allowed = f"{shown_value(default)} with method {row.name}, which heeds no other"
            yield fault(("method", key), value, allowed)
    if not spec.clustered:
        if spec.groups:
            found = [each.name for each in spec.groups]
            yield fault(("groups",), found, f"no groups with method {row.name}")
        for key in ("dominance", "max_of_one_value"):
            if getattr(spec.quality, key) is not None:
                yield fault(
                    ("quality", key), NOTHING, f"no such key with method {row.name}: it has no clusters"
                )
    for name in spec.quasi_identifiers:
        kind, costs = spec.variables[name].kind, spec.variables[name].costs
        if kind is not None and kind not in row.kinds:
            allowed = f"{', '.join(row.kinds)} with method {row.name}"
            yield fault(("variables", name, "kind"), kind, allowed)
        if costs is not None and spec.coarsened:
            allowed = f"no such key with method {row.name}, which publishes no other category"
            yield fault(("variables", name, "costs"), costs, allowed)
    if spec.with_role("risk") and "roles.risk" not in row.keys:
        allowed = f"no variable of role risk with method {row.name}, which reads no risks"
        yield fault(("variables",), list(spec.with_role("risk")), allowed)


def _unfit(spec: Specification, row: MethodRow) -> Iterator[Fault]:
    """Refuse parameters that do not fit the variables."""
    parameters = spec.method.method_parameters(row)
    if parameters is None:
        return
    for key, found, allowed in parameters.unfit(spec.declared):
        path = ("method", "parameters", key) if key else ("method", "name")
        yield fault(path, NOTHING if found is None else found, allowed, choices=spec.variables)


def method_faults(spec: Specification) -> Iterator[Fault]:
    """Refuse unsupported combinations of method, algorithm, effort, representative and kinds."""
    if not spec.quasi_identifiers:
        if spec.table is None:
            yield fault(("variables",), NOTHING, "at least one variable of role quasi_identifier")
        return
    if any(spec.variables[name].kind is None for name in spec.quasi_identifiers):
        return
    unit = spec.method.unit
    if unit != "record" and spec.counted is None:
        yield fault(("method", "unit"), unit, f"record, as no variable has the role {unit}")
    if spec.method.name == "safe" and spec.method.algorithm in ("auto", *SAFE):
        yield from _effort(spec, "safe", " with SAFE")
    if spec.method.name != "microaggregation":
        yield from _control_table_bounds(spec)
        return
    for group in spec.clusterings:
        variables = tuple(name for name in group.variables if name in spec.quasi_identifiers)
        if variables:
            yield from _of_group(spec, group, variables)
    yield from _control_table_bounds(spec)


def _effort(spec: Specification, strategy: Strategy, of: str, weighted: bool = False) -> Iterator[Fault]:
    method = spec.method
    allowed = efforts(strategy, method.algorithm, weighted)
    if method.effort not in allowed:
        named = "" if method.algorithm == "auto" else f" with algorithm {method.algorithm}"
        yield fault(("method", "effort"), method.effort, f"{', '.join(allowed)}{named}{of}")


def _of_group(spec: Specification, group: Group, variables: tuple[str, ...]) -> Iterator[Fault]:
    method = spec.method
    kinds, strategy = spec.kinds(variables), spec.strategy(group)
    of = f" for {kinds} quasi-identifiers" + (f" (group {group.name})" if spec.groups else "")
    representatives = REPRESENTATIVES[kinds]
    if method.representative not in representatives:
        yield fault(("method", "representative"), method.representative, ", ".join(representatives) + of)
        return
    needs = spec.needs_clusters
    if needs is not None and method.representative == "control_tables":
        allowed = f"auto, mode, medoid with {needs}, which needs clusters"
        yield fault(("method", "representative"), method.representative, allowed)
        return
    if strategy == "microaggregation" and kinds == "nominal":
        because = needs or f"representative {method.representative}"
        of += f" with {because}, which needs clusters"
    if list(algorithm_faults(spec)):
        return
    weighted = spec.weighted_by(group) is not None
    if weighted and _carried(spec, strategy, kinds, len(variables)):
        of += f", weighted by {spec.weight}; or method.weighted = false"
    names = algorithms(strategy, kinds, len(variables), weighted)
    if method.algorithm not in names:
        yield fault(("method", "algorithm"), method.algorithm, ", ".join(names) + of)
    else:
        yield from _effort(spec, strategy, of, weighted)
    clustered = Variables({name: str(spec.variables[name].kind) for name in variables})
    for key, section in method.sections.items():
        for parameter, found, allowed in section.unfit(clustered):
            yield fault(("method", key, parameter), found, allowed + of)


def _carried(spec: Specification, strategy: Strategy, kinds: Kinds, variables: int) -> bool:
    """Return whether the algorithm would support the effort if there were no weights."""
    method = spec.method
    return method.algorithm in algorithms(strategy, kinds, variables) and method.effort in efforts(
        strategy, method.algorithm
    )


def _control_table_bounds(spec: Specification) -> Iterator[Fault]:
    method = spec.method
    bounds = method.control_tables.max_absolute_error
    searching = method.name == "microaggregation" and method.algorithm in ("auto", "local-search")
    on_tables = method.representative in BY_CONTROL_TABLES and spec.needs_clusters is None
    if bounds is not None and not (searching and on_tables):
        allowed = (
            "no such key, because only a search on control tables uses it (algorithm auto or local-search, "
            "representative auto or control_tables, min_diversity 1, unit record)"
        )
        yield fault(("method", "control_tables", "max_absolute_error"), by_dimension(bounds), allowed)
    yield from _kept(spec)


def _kept(spec: Specification) -> Iterator[Fault]:
    """Refuse keys for kept cells if neither a search on control tables nor a joint choice of representatives
    uses them.
    """
    method = spec.method
    strategies = {
        spec.strategy(group) for group in spec.clusterings if spec.kinds(group.variables) != "numeric"
    }
    searched = method.algorithm in ("auto", "local-search") or "frequency" not in strategies
    heeded = (
        strategies and "safe" not in strategies and searched and method.representative in BY_CONTROL_TABLES
    )
    if method.control_tables.kept_dimension and not heeded:
        allowed = (
            "0, because only a search on control tables uses it (nominal quasi-identifiers, method "
            "microaggregation, representative auto or control_tables, and of combinations algorithm auto or "
            "local-search)"
        )
        key = ("method", "control_tables", "kept_dimension")
        yield fault(key, method.control_tables.kept_dimension, allowed)


def diversity_faults(spec: Specification) -> Iterator[Fault]:
    """Refuse a minimum diversity without a sensitive variable."""
    if spec.method.min_diversity > 1 and not spec.sensitive:
        value = spec.method.min_diversity
        yield fault(("method", "min_diversity"), value, "1, as no variable has the role sensitive")
