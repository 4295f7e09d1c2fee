"""Checks whether the method can carry the quasi-identifiers and the other keys of `[method]`.

A key that the method would not heed is refused, never ignored.
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

OF_CLUSTERINGS = ("algorithm", "effort", "representative", "unit", "min_diversity", "weighted")
"""Keys of `[method]` that not every method heeds, next to the sections of algorithms."""
MOST_SUPPRESSED = 63
"""Most variables of local suppression: a pattern of missing values is a number of 64 bits."""


def algorithm_faults(spec: Specification) -> Iterator[Fault]:
    """Refuse a method that is not installed or unusable, what it does not heed, and an unknown algorithm."""
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
    if method.name == "swapping" and not of_parameters:
        yield from _swapping(spec)
    if spec.coarsened and not of_parameters:
        yield from _coarsening(spec)
    if method.name not in STRATEGIES:
        for key in method.sections:
            yield fault(("method", key), NOTHING, f"no such section with method {row.name}")
    elif method.algorithm not in all_algorithms(method.name):
        known = all_algorithms(method.name)
        yield fault(("method", "algorithm"), method.algorithm, ", ".join(known), choices=known)


def _unheeded(spec: Specification, row: MethodRow) -> Iterator[Fault]:
    """Refuse keys of `[method]` and kinds of quasi-identifiers that the method cannot carry."""
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
        kind = spec.variables[name].kind
        if kind is not None and kind not in row.kinds:
            allowed = f"{', '.join(row.kinds)} with method {row.name}"
            yield fault(("variables", name, "kind"), kind, allowed)


def _unfit(spec: Specification, row: MethodRow) -> Iterator[Fault]:
    """Refuse parameters that do not fit the quasi-identifiers."""
    parameters = spec.method.method_parameters(row)
    kinds = {name: str(spec.variables[name].kind) for name in spec.quasi_identifiers}
    for key, found, allowed in () if parameters is None else parameters.unfit(kinds):
        yield fault(("method", "parameters", key), found, allowed)


def _coarsening(spec: Specification) -> Iterator[Fault]:
    """Refuse too many variables, costs that no suppression heeds, and folders counted by another k."""
    method, found = spec.method, len(spec.quasi_identifiers)
    if method.name == "local_suppression" and found > MOST_SUPPRESSED:
        allowed = f"at most {MOST_SUPPRESSED} quasi-identifiers with this method, found {found}"
        yield fault(("method", "name"), method.name, allowed)
    for name in spec.quasi_identifiers:
        if spec.variables[name].costs is not None:
            allowed = f"no such key with method {method.name}, which publishes no other category"
            yield fault(("variables", name, "costs"), spec.variables[name].costs, allowed)
    if method.parameters.get("missing") == "any_value" and spec.publish.partition_by is not None:
        allowed = 'no such key with method.parameters.missing = "any_value": folders are counted by category'
        yield fault(("publish", "partition_by"), spec.publish.partition_by, allowed)


def _swapping(spec: Specification) -> Iterator[Fault]:
    """Refuse areas and risk variables that are no quasi-identifiers, and profiles of unknown variables."""
    given = spec.method.parameters
    geography, risk, similar = (list(given.get(key, ())) for key in ("geography", "risk", "similar"))
    key = ("method", "parameters")
    if spec.region is not None:
        allowed = (
            "quasi_identifier, the coarsest level of method.parameters.geography: beside a region that stays "
            "where it is, an exchanged area of another region would be seen"
        )
        yield fault(("variables", spec.region, "role"), "region", allowed)
    if not geography or len(set(geography)) < len(geography):
        yield fault(
            (*key, "geography"), geography, "one or more quasi-identifiers, coarse to fine, each once"
        )
    hierarchies = [list(each) for each in given.get("hierarchies", ())]
    further = (
        [name for each in hierarchies for name in each[each[0] in geography :]] if all(hierarchies) else []
    )
    for each in hierarchies:
        if len(each) < 1 + (each[:1] != [] and each[0] in geography) or (
            len(each) > 1 and each[0] not in geography
        ):
            allowed = "a level of geography and then further quasi-identifiers, or one quasi-identifier alone"
            yield fault((*key, "hierarchies"), each, allowed)
    if len(set(further)) < len(further) or set(further) & set(geography):
        yield fault((*key, "hierarchies"), hierarchies, "each further level once, and none of geography")
    nominal = [name for name in spec.quasi_identifiers if spec.variables[name].kind == "nominal"]
    for place, names in (("geography", geography), ("hierarchies", further)):
        for name in names:
            if name not in nominal:
                yield fault((*key, place), name, "quasi-identifiers of kind nominal", choices=nominal)
    others = [name for name in spec.quasi_identifiers if name not in {*geography, *further}]
    for name in risk:
        if name not in others:
            yield fault((*key, "risk"), name, "quasi-identifiers outside geography", choices=others)
    if not others:
        yield fault((*key, "risk"), NOTHING, "at least one quasi-identifier outside geography")
    yield from _risk_values(spec, geography, hierarchies)
    known = [*others, *spec.published, *(["household_size"] if spec.with_role("household") else [])]
    for name in (name for profile in similar for name in profile):
        if name not in known or name in {*geography, *further}:
            yield fault((*key, "similar"), name, "published variables outside geography", choices=known)


def _risk_values(spec: Specification, geography: list[str], hierarchies: list[list[str]]) -> Iterator[Fault]:
    """Refuse supplied risks that are published, unused, or not one for all levels or one for each."""
    given, key = spec.method.parameters, ("method", "parameters")
    values, supplied = list(given.get("risk_values", ())), spec.with_role("risk")
    for name in values:
        if name not in supplied:
            yield fault((*key, "risk_values"), name, "variables of role risk", choices=supplied)
    if set(supplied) - set(values):
        yield fault((*key, "risk_values"), values, f"every variable of role risk: {', '.join(supplied)}")
    if len(values) > 1 and (hierarchies or len(values) != len(geography)):
        allowed = "one variable, or one for each level of geography where there are no further hierarchies"
        yield fault((*key, "risk_values"), values, allowed)
    if bool(values) != ("risk_threshold" in given):
        found = given.get("risk_threshold", NOTHING)
        yield fault(
            (*key, "risk_threshold"), found, "the value from which a record is at risk, with risk_values"
        )


def method_faults(spec: Specification) -> Iterator[Fault]:
    """Refuse combinations of method, algorithm, effort, representative and kinds that cannot be carried
    out."""
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


def _carried(spec: Specification, strategy: Strategy, kinds: Kinds, variables: int) -> bool:
    """Whether algorithm and effort could be carried out without weights."""
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
            "no such key, as only a search on control tables heeds it (algorithm auto or local-search, "
            "representative auto or control_tables, min_diversity 1, unit record)"
        )
        yield fault(("method", "control_tables", "max_absolute_error"), by_dimension(bounds), allowed)
    yield from _kept(spec)


def _kept(spec: Specification) -> Iterator[Fault]:
    """Refuse cells to be kept if neither a search on control tables nor a joint choice heeds them."""
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
            "0, as only a search on control tables heeds it (nominal quasi-identifiers, method "
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
