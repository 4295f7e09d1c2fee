"""Checks that involve several keys of a specification."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path as Folder

from microguard.schemas.methods import STRATEGIES, all_algorithms
from microguard.schemas.roles import AT_MOST_ONE, KINDS, NOMINAL_ONLY
from microguard.schemas.specification.control_table_consistency import control_table_faults
from microguard.schemas.specification.distance_consistency import distance_faults
from microguard.schemas.specification.faults import NOTHING, Fault, Path, fault
from microguard.schemas.specification.layout_consistency import layout_faults
from microguard.schemas.specification.method_consistency import (
    algorithm_faults,
    diversity_faults,
    method_faults,
)
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.parameters import parameter_faults
from microguard.schemas.specification.recode_consistency import recode_faults, rule_faults
from microguard.schemas.specification.series_consistency import series_faults
from microguard.schemas.specification.unmodified_columns import unmodified_columns

FREQUENCY = "frequency"
"""Column of the published tables that contains the number of records."""
CURRENT = "current.json"
"""File of a public area that names its current release."""
LEDGER = "ledger.jsonl"
"""File of an evidence area that records what was published from it."""
BELOW = ("", "*/", "*/*/")
"""Depth to which an evidence area is searched below a public one; only its folders are searched, because
releases are numerous."""
STORES = ("s3", "gs", "az", "abfs", "abfss")
"""Schemes of object stores in which an area may be."""
PATTERN = frozenset("*?[]{}\\")
"""Characters by which Spark recognises a path as a pattern of names."""
NOT_IN_DELTA = frozenset("#?%")
"""Characters that end the path of an address or begin an escape in it, so that Delta would write to another
folder."""


def inconsistencies(specification: Specification, in_doubt: bool = False) -> list[Fault]:
    """Return all inconsistencies between keys that are valid separately.

    `in_doubt` states that the role or kind of some variable is unknown. Checks that depend on roles and kinds
    are then skipped.
    """
    checks: list[Callable[[Specification], Iterable[Fault]]] = [
        _roles,
        _kinds,
        distance_faults,
        recode_faults,
        _paths,
        _blocking,
        algorithm_faults,
        _parameters,
    ]
    if not in_doubt:
        checks += [
            method_faults,
            _groups,
            control_table_faults,
            series_faults,
            layout_faults,
            _counted,
            _gate,
            _population,
            _acceptances,
            diversity_faults,
            _dependencies,
            rule_faults,
            _derived,
            _table,
        ]
    return [each for check in checks for each in check(specification)]


def _table(spec: Specification) -> Iterable[Fault]:
    """Return the faults of `[table]` if the specification has this section."""
    if spec.table is None:
        return []
    from microguard.schemas.specification.table_consistency import table_faults

    return table_faults(spec)


def _derived(spec: Specification) -> Iterable[Fault]:
    if not spec.derived and not spec.with_role("derived"):
        return ()
    from microguard.schemas.specification.derived_consistency import derived_faults

    return derived_faults(spec)


def _parameters(spec: Specification) -> Iterator[Fault]:
    method = spec.method
    if method.name in STRATEGIES and method.algorithm in all_algorithms(method.name):
        yield from parameter_faults(
            method.name, method.algorithm, method.effort, method.sections, bool(spec.nominal)
        )


def _roles(spec: Specification) -> Iterator[Fault]:
    for role in AT_MOST_ONE:
        names = spec.with_role(role)
        if len(names) > 1:
            yield fault(("variables",), list(names), f"at most one variable of role {role}")
    weight = spec.method.weight
    if weight is not None and weight not in spec.weights:
        allowed = f"a variable of role weight ({', '.join(spec.weights) or 'there is none'})"
        yield fault(("method", "weight"), weight, allowed, choices=spec.weights)
    if not spec.method.weighted and not spec.weights:
        yield fault(("method", "weighted"), False, "not applicable, because no variable has the role weight")
    if weight is None and len(spec.weights) > 1:
        allowed = f"one of {', '.join(spec.weights)}, because there are several weights and only one is used"
        yield fault(("method", "weight"), NOTHING, allowed)


def _kinds(spec: Specification) -> Iterator[Fault]:
    for name, variable in spec.variables.items():
        key: Path = ("variables", name, "kind")
        if variable.role == "quasi_identifier" and variable.kind is None:
            yield fault(key, NOTHING, ", ".join(KINDS) + "; required for a quasi-identifier")
        elif variable.role in NOMINAL_ONLY and variable.kind == "numeric":
            yield fault(
                key, "numeric", (f"nominal, or no kind, because the values of role {variable.role} are names")
            )
        elif variable.role == "weight" and variable.kind == "nominal":
            yield fault(key, "nominal", "numeric, or no kind, because a weight is a number")
        elif variable.role == "risk" and variable.kind not in (None, "numeric"):
            yield fault(key, variable.kind, "numeric, or no kind, because a risk is a number")


def _paths(spec: Specification) -> Iterator[Fault]:
    public, evidence, source = map(_real, (spec.public_area, spec.evidence_area, spec.input_path))
    yield from _private_files(spec)
    yield from _signs(spec)
    if _inside(evidence, public):
        yield fault(("publish", "evidence"), spec.publish.evidence, "a place outside the public area")
    elif _inside(public, evidence):
        allowed = "a place outside the evidence area, which only the agency may enter"
        yield fault(("publish", "path"), spec.publish.path, allowed)
    elif _beside_evidence(public):
        allowed = "a place outside every evidence area: this one, or a folder above or below it, has a ledger"
        yield fault(("publish", "path"), spec.publish.path, allowed)
    if _inside(source, public):
        yield fault(("input", "path"), spec.input.path, "a place outside the public area")
    shared = spec.shared_ledger
    ledger = None if shared is None else _real(shared)
    if ledger is not None and _inside(ledger, public):
        yield fault(("publish", "ledger"), spec.publish.ledger, "a place outside the public area")
    for key, place in (("evidence", evidence), ("ledger", ledger)):
        if place is not None and not _inside(place, public) and among_releases(place):
            allowed = "a place outside every public area: this one, or a folder above it, has releases"
            yield fault(("publish", key), getattr(spec.publish, key), allowed)
    for key, place in (("path", public), ("evidence", evidence), ("ledger", ledger)):
        if place is not None and place != source and _inside(place, source):
            yield fault(("publish", key), getattr(spec.publish, key), "a place outside the input folder")
    for key, place in (("path", spec.public_area), ("evidence", spec.evidence_area), ("ledger", shared)):
        if place is not None and not _may_be_folder(place):
            allowed = "an existing folder, or a path where a folder can be created"
            yield fault(("publish", key), getattr(spec.publish, key), allowed)
    for key in ("path", "evidence", "ledger"):
        place = getattr(spec.publish, key)
        if place is not None and "://" in place and place.partition("://")[0] not in STORES:
            allowed = f"a folder, or an object store ({', '.join(f'{name}://' for name in STORES)})"
            yield fault(("publish", key), place, allowed)
    stored = spec.publish.path.startswith(tuple(f"{name}://" for name in STORES))
    if stored and spec.publish.format == "iceberg" and spec.publish.catalog is None:
        allowed = "parquet, delta, or iceberg with publish.catalog, because publish.path is an object store"
        yield fault(("publish", "format"), spec.publish.format, allowed)
    if spec.publish.format == "delta" and NOT_IN_DELTA & set(_real(spec.public_area)):
        allowed = (
            f"a folder without {', '.join(sorted(NOT_IN_DELTA))} in its path, because a Delta table is "
            "written to it"
        )
        yield fault(("publish", "path"), spec.publish.path, allowed)
    if spec.input.columns and spec.input.format == "parquet":
        yield fault(
            ("input", "columns"),
            list(spec.input.columns),
            "not applicable to parquet, because its files name the columns",
        )
    if spec.input.version is not None and spec.input.timestamp is not None:
        yield fault(("input", "timestamp"), spec.input.timestamp, "not applicable next to input.version")
    for key in ("version", "timestamp"):
        if spec.input.format == "csv" and getattr(spec.input, key) is not None:
            allowed = "not applicable to csv, because only a Delta or Iceberg table has versions"
            yield fault(("input", key), getattr(spec.input, key), allowed)
    if len(set(spec.input.columns)) < len(spec.input.columns):
        yield fault(("input", "columns"), list(spec.input.columns), "each name once")
    if spec.input.positions and (spec.input.columns or spec.input.format == "parquet"):
        allowed = "not applicable to parquet, nor next to input.columns"
        yield fault(("input", "positions"), list(spec.input.positions), allowed)
    if spec.input.metadata is not None and spec.table is None:
        yield fault(("input", "metadata"), spec.input.metadata, "not applicable without a section [table]")
    suffix = spec.input.path.lower().removesuffix(".gz").rpartition(".")[2]
    if suffix in ("csv", "tsv", "txt", "parquet") and (suffix == "parquet") != (
        spec.input.format == "parquet"
    ):
        allowed = "csv" if spec.input.format == "parquet" else "parquet"
        yield fault(("input", "format"), spec.input.format, f"{allowed}, as input.path ends in .{suffix}")


def _private_files(spec: Specification) -> Iterator[Fault]:
    """Return the faults of files that readers must not see but that are in the public area."""
    population = None if spec.population is None else spec.population.path
    a_priori = None if spec.table is None else spec.table.a_priori
    for key, path in ((("population", "path"), population), (("table", "a_priori"), a_priori)):
        if path is not None and within(spec.resolve(path), spec.public_area):
            yield fault(key, path, "a place outside the public area")


def within(path: str, folder: str) -> bool:
    """Return whether a path is a folder or inside it; symbolic links are followed."""
    return _inside(_real(path), _real(folder))


def _real(path: str) -> str:
    """Return the normalised path: symbolic links are followed, and the schemes of Hadoop replaced by those of
    the store.
    """
    if "://" not in path:
        return os.path.realpath(path)
    scheme, _, rest = path.rstrip("/").partition("://")
    return f"{'s3' if scheme in ('s3a', 's3n') else scheme}://{rest}"


def _may_be_folder(path: str) -> bool:
    """Return whether every existing part of the path is a folder."""
    while "://" not in path and not os.path.lexists(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return "://" in path or os.path.isdir(path)


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def among_releases(path: str) -> bool:
    """Return whether a path is the public area of a specification, or inside one."""
    return "://" not in path and any((folder / CURRENT).is_file() for folder in _upwards(path))


def _signs(spec: Specification) -> Iterator[Fault]:
    """Return the faults of paths with characters that Spark interprets."""
    evidence, path = spec.publish.evidence, spec.input.path
    if (
        "://" not in evidence and "," in spec.evidence_area
    ):  # otherwise scratch files would be written to two different folders
        allowed = "a place whose absolute path contains no comma, because Spark splits paths at commas"
        yield fault(("publish", "evidence"), evidence, allowed)
    if path and "://" not in path and not path.startswith(("/", "~")) and PATTERN & set(str(spec.folder)):
        allowed = (
            "an absolute path, because the path of the specification contains one of "
            f"{' '.join(sorted(PATTERN))}, which Spark interprets as a pattern of names"
        )
        yield fault(("input", "path"), path, allowed)


def _beside_evidence(path: str) -> bool:
    """Return whether a path is an evidence area, is inside one, or contains one."""
    if "://" in path:
        return False
    below = (found for depth in BELOW for found in Folder(path).glob(depth + LEDGER))
    return any((folder / LEDGER).is_file() for folder in _upwards(path)) or any(below)


def _upwards(path: str) -> tuple[Folder, ...]:
    """Return a folder and all folders above it."""
    return (Folder(path), *Folder(path).parents)


def _blocking(spec: Specification) -> Iterator[Fault]:
    least = 2 * spec.release.k
    if spec.blocking.max_records != "auto" and spec.blocking.max_records < least:
        yield fault(
            ("blocking", "max_records"), spec.blocking.max_records, f'"auto" or at least 2k = {least}'
        )


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
                yield fault(key, name, f"each variable once; it is already in group {placed[name]}")
            placed.setdefault(name, group.name)
    left = [name for name in spec.quasi_identifiers if name not in placed]
    if spec.groups and left:
        yield fault(("groups",), f"no group with {', '.join(left)}", "every quasi-identifier in one group")


def _counted(spec: Specification) -> Iterator[Fault]:
    """Return the faults of variables whose name equals the count column of the published tables, ignoring
    case as readers of files do.
    """
    in_tables = (
        {*spec.nominal, *(name for table in spec.control_tables for name in table)} if spec.nominal else ()
    )
    for name in sorted(in_tables):
        if name.casefold() == FREQUENCY:
            allowed = (
                "another name in the file, because the published tables use this name for the number of "
                "records"
            )
            yield fault(("variables", name), name, allowed)


def _gate(spec: Specification) -> Iterator[Fault]:
    quality = spec.quality
    for name, needed, kind in (
        ("max_information_loss", spec.numeric, "numeric"),
        ("max_of_one_value", spec.numeric, "numeric"),
        ("dominance", spec.numeric, "numeric"),
        ("max_chi2_per_cell", spec.nominal, "nominal"),
    ):
        value = getattr(quality, name)
        if value is not None and not needed:
            shown = value.model_dump() if name == "dominance" else value
            yield fault(("quality", name), shown, f"not applicable, because no quasi-identifier is {kind}")


def _population(spec: Specification) -> Iterator[Fault]:
    """Return the faults of variables by which the population is counted although their protected values do
    not occur in it.
    """
    limit = spec.quality.max_below_k_in_population
    if spec.population is None:
        if limit is not None:
            yield fault(
                ("quality", "max_below_k_in_population"), limit, "not applicable without [population]"
            )
        return
    choices = tuple(name for name in (spec.region, *spec.nominal) if name is not None)
    key: Path = ("population", "variables")
    if not spec.population_key:
        yield fault(
            ("population",),
            NOTHING,
            ("a region or a nominal quasi-identifier by which the population is counted"),
        )
    for name in spec.population_key:
        if name not in choices:
            allowed = f"the region and nominal quasi-identifiers ({', '.join(choices)})"
            yield fault(key, name, allowed, choices=choices)
    if len(set(spec.population_key)) < len(spec.population_key):
        yield fault(key, list(spec.population_key), "each variable once")
    if spec.population.count in spec.population_key:
        yield fault(("population", "count"), spec.population.count, "a column that is not in population.key")


HELD_BY_DEFAULT = ("max_unique_published", "max_unique_jointly", "max_homogeneous")
"""Limits of `[quality]` on disclosure that apply to every release of records by default.

A steward can accept them by name in `quality.accept`."""


def _acceptances(spec: Specification) -> Iterator[Fault]:
    for name in ("min_entropy_diversity", "max_t"):
        if getattr(spec.quality, name) is not None and not spec.sensitive:
            value = getattr(spec.quality, name)
            yield fault(("quality", name), value, "not applicable, because no variable is sensitive")
    for name in spec.quality.accept:
        if name not in HELD_BY_DEFAULT:
            yield fault(("quality", "accept", name), name, ", ".join(HELD_BY_DEFAULT))
    for name, reason in spec.quality.accept.items():
        if not reason.strip():
            yield fault(("quality", "accept", name), reason, "the reason, and by whom")


def _dependencies(spec: Specification) -> Iterator[Fault]:
    columns = unmodified_columns(spec)
    for name in spec.publish.accept_dependencies:
        if name not in columns:
            allowed = f"columns published unmodified ({', '.join(columns) or 'none'})"
            yield fault(("publish", "accept_dependencies"), name, allowed, choices=columns)
