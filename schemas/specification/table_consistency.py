"""Checks of `[table]`: consistency of its keys with each other and with `[variables]`."""

from __future__ import annotations

from collections.abc import Iterator

from microguard.schemas.errors import SpecificationError
from microguard.schemas.method_registry import BUILT_IN, TABLE_KEYS, method_exists, method_names, method_row
from microguard.schemas.roles import PUBLISHED
from microguard.schemas.specification.cell_key_consistency import cell_key_faults
from microguard.schemas.specification.faults import NOTHING, Fault, fault
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.parameters import method_parameter_faults
from microguard.schemas.specification.record_key_consistency import record_key_faults
from microguard.schemas.specification.suppression_consistency import contributor_faults, suppression_faults
from microguard.schemas.specification.table import Table
from microguard.schemas.specification.table_quality import TableQuality

OF_CELLS = (
    "contributors",
    "largest",
    "lower_protection",
    "upper_protection",
    "sliding_protection",
    "lower_capacity",
    "upper_capacity",
    "tolerance",
    "totals",
    "shadow",
    "margins",
    "status",
    "statuses",
)
"""Keys that apply only to a table of finished cells."""
OF_THE_COUNT = ("t", "v", "total", "parts_sum", "parts", "hidden", "listed")
"""Names that `pipelines.guarantees.table_files` uses for columns of its queries."""


def table_faults(spec: Specification) -> list[Fault]:
    """Return all faults of the section; an empty result without the section."""
    if spec.table is None:
        return []
    checks = (
        _dimensions,
        _parts,
        _nesting,
        _numbers,
        _source,
        _counts,
        _method,
        _acceptances,
        _rounding,
        _relaxation,
        _rules,
        _publication,
        _missing,
        cell_key_faults,
        suppression_faults,
        contributor_faults,
        record_key_faults,
    )
    return [each for check in checks for each in check(spec, spec.table)]


def _dimensions(spec: Specification, table: Table) -> Iterator[Fault]:
    for number, dimensions in enumerate(table.tables):
        if not dimensions or len(set(dimensions)) < len(dimensions):
            yield fault(
                ("table", "tables"), list(dimensions), "at least one dimension, and each only once in a table"
            )
        if set(dimensions) in [set(earlier) for earlier in table.tables[:number]]:
            yield fault(("table", "tables"), list(dimensions), "each table once")
        held = [name for each in dimensions for name in table.levels_of(each)]
        if len(set(dimensions)) == len(dimensions) and len(set(held)) < len(held):
            yield fault(
                ("table", "tables"), list(dimensions), ("at most one dimension of a hierarchy in a table")
            )
    coarser = {name for each in table.dimensions for name in table.levels_of(each)} - set(table.dimensions)
    for name in set(table.columns) - set(table.parts):
        variable = spec.variables.get(name)
        allowed_roles = PUBLISHED - {"weight"}
        if name in coarser:  # a coarser level identifies nobody, and records need not contain it
            allowed_roles |= {"identifier"}
        if variable is None or variable.role not in allowed_roles or variable.kind == "numeric":
            allowed = "columns of [variables] that are nominal, and no identifier, unit, household or weight"
            yield fault(("table", "tables"), name, allowed, choices=spec.published)


def _parts(spec: Specification, table: Table) -> Iterator[Fault]:
    if table.parts and (table.source != "microdata" or table.kind != "magnitude"):
        yield fault(("table", "parts"), list(table.parts), "not applicable unless records are summed")
    if len(table.parts) > 1:
        yield fault(("table", "parts"), list(table.parts), "one dimension")
    nested = {name for hierarchy in table.hierarchies for name in hierarchy}
    for name, columns in table.parts.items():
        if name not in table.dimensions or name in nested or name in spec.variables:
            yield fault(("table", "parts"), name, "a dimension of a table that is no column of [variables]")
        if len(columns) < 2 or len({table.value, *columns}) <= len(columns):
            allowed = "two or more columns, each once, whose sum is table.value"
            yield fault(("table", "parts", name), list(columns), allowed)


def _nesting(spec: Specification, table: Table) -> Iterator[Fault]:
    placed: set[str] = set()
    for hierarchy in table.hierarchies:
        anew = hierarchy[-1:] if table.source == "microdata" else ()
        if len(hierarchy) < 2 or placed & set(hierarchy) - set(anew) or len(set(hierarchy)) < len(hierarchy):
            allowed = "two or more columns from coarse to fine, each in one hierarchy"
            if anew:
                allowed += " (the last one of a later hierarchy may be a column of an earlier one)"
            yield fault(("table", "hierarchies"), list(hierarchy), allowed)
        elif not set(hierarchy) & set(table.dimensions):
            yield fault(("table", "hierarchies"), list(hierarchy), "hierarchies of a dimension of a table")
        elif hierarchy[-1] in placed and not (
            hierarchy[-1] in table.columns and set(hierarchy[:-1]) & set(table.dimensions)
        ):
            allowed = "a column of a table that is grouped again by a dimension of another table"
            yield fault(("table", "hierarchies"), list(hierarchy), allowed)
        placed |= set(hierarchy)
    for key in ("parents", "code_widths"):
        if getattr(table, key) and table.source == "microdata" and table.method == "cell_key":
            allowed = (
                "not applicable with method cell_key; name the coarser codes as columns (table.hierarchies)"
            )
            yield fault(("table", key), list(getattr(table, key)), allowed)
    for name, widths in table.code_widths.items():
        if name not in table.dimensions or name in placed:
            allowed = f"dimensions without hierarchy ({', '.join(set(table.dimensions) - placed) or 'none'})"
            yield fault(("table", "code_widths"), name, allowed, choices=table.dimensions)
        elif list(widths) != sorted(set(widths)):
            yield fault(("table", "code_widths", name), list(widths), "numbers of characters, ascending")
    for name, parents in table.parents.items():
        if name not in table.dimensions or name in placed:
            allowed = f"dimensions without hierarchy ({', '.join(set(table.dimensions) - placed) or 'none'})"
            yield fault(("table", "parents"), name, allowed, choices=table.dimensions)
        elif table.total in parents or _has_circle(parents):
            yield fault(("table", "parents", name), "a circle", "parents that lead to the total")


def _has_circle(parents: dict[str, str]) -> bool:
    for code in parents:
        steps = 0
        while code in parents:
            code, steps = parents[code], steps + 1
            if steps > len(parents):
                return True
    return False


def _numbers(spec: Specification, table: Table) -> Iterator[Fault]:
    for name in table.totals:
        if name not in table.columns:
            yield fault(("table", "totals"), name, "columns of a dimension", choices=table.columns)
    for name in table.numbers:
        variable = spec.variables.get(name)
        if variable is None or variable.role not in PUBLISHED or variable.kind != "numeric":
            yield fault(("table",), name, 'columns of [variables] of kind "numeric", and no weight')
        elif name in table.columns:
            yield fault(("table",), name, "a column that is no dimension")
    for one, other in (
        ("lower_protection", "upper_protection"),
        ("lower_capacity", "upper_capacity"),
    ):
        if (getattr(table, one) is None) != (getattr(table, other) is None):
            yield fault(("table", one), NOTHING, f"{one} and {other} together")
    if table.status is not None:
        known = spec.variables.get(table.status)
        if known is None or known.role not in PUBLISHED - {"weight"} or known.kind == "numeric":
            yield fault(("table", "status"), table.status, "a column of [variables] that is nominal")
        elif table.status in table.columns:
            yield fault(("table", "status"), table.status, "a column that is no dimension")
    named: dict[str, str] = {table.value_name.casefold(): "values"}
    named |= dict.fromkeys(OF_THE_COUNT, "columns of the count of the guarantee")
    for name in table.columns:
        if name.casefold() in named:
            allowed = f"another name, because the {named[name.casefold()]} have this name; SQL ignores case"
            yield fault(("table", "tables"), name, allowed)
        named.setdefault(name.casefold(), f"codes of {name}")


def _source(spec: Specification, table: Table) -> Iterator[Fault]:
    if table.source == "cells":
        if table.value is None:
            yield fault(("table", "value"), NOTHING, "the column with the values of the cells")
        if table.weighted:
            yield fault(("table", "weighted"), True, "false, because the cells are already summed")
        return
    if (table.kind == "magnitude") != (table.value is not None):
        allowed = "a column for a magnitude, none for a frequency"
        yield fault(("table", "value"), NOTHING if table.value is None else table.value, allowed)
    if table.weighted and spec.weight is None:
        yield fault(("table", "weighted"), True, "false, because no variable has the role weight")
    for key in OF_CELLS:
        if getattr(table, key) != Table.model_fields[key].get_default():
            yield fault(("table", key), getattr(table, key), 'not applicable unless source is "cells"')
    if table.cost_column is not None:
        names = table.cost_names
        yield fault(("table", "costs"), table.costs, ", ".join(names), choices=names)


def _counts(spec: Specification, table: Table) -> Iterator[Fault]:
    if table.counts:
        if table.digits:
            yield fault(("table", "decimals"), table.decimals, "0 for counts, which are whole")
        if table.mode == "exact" and table.levels == "secret":
            yield fault(("table", "mode"), table.mode, '"at-least" for counts, which are drawn')
        for key in ("a_priori", "status", "zero_safety_range") if table.method != "suppression" else ():
            if getattr(table, key) is not None:
                yield fault(("table", key), getattr(table, key), "not applicable to counts, which are drawn")
        if table.relax and table.method != "rounding":
            yield fault(("table", "relax"), list(table.relax), "not applicable to counts, which are drawn")
        if table.preserve.model_fields_set:
            named = ", ".join(sorted(table.preserve.model_fields_set))
            yield fault(("table", "preserve"), named, "not applicable to counts, which are drawn")
        if table.fixed_margins and table.levels == "secret":
            yield fault(
                ("table", "fixed_margins"), True, ("false for counts, whose totals are the sums of the draws")
            )
        return
    if table.zeros == "omit":
        yield fault(("table", "zeros"), table.zeros, '"all", because zeros of a magnitude are no counts')
    if table.zero_safety_range is not None and table.status is None and table.a_priori is None:
        allowed = "not applicable unless table.status or table.a_priori declares cells sensitive"
        yield fault(("table", "zero_safety_range"), table.zero_safety_range, allowed)


def _method(spec: Specification, table: Table) -> Iterator[Fault]:
    """Return the faults of methods that are not installed or unusable, and of keys that the method
    ignores.
    """
    if not method_exists("table", table.method):
        names = method_names("table")
        yield fault(("table", "method"), table.method, ", ".join(names), choices=names)
        return
    try:
        row = method_row("table", table.method)
    except SpecificationError as error:
        yield Fault(("table", "method"), str(error).removesuffix("."))
        return
    yield from method_parameter_faults(row, table.parameters, "table")
    of_third_parties = () if table.method in BUILT_IN else (*UNHEEDED, *_limits())
    for key in (*TABLE_KEYS, *of_third_parties):
        *_, section, name = ("table", *key.split("."))
        holder = table.quality if section == "quality" else table
        if key in row.keys or name not in holder.model_fields_set:
            continue
        value = getattr(holder, name)
        heeding = " or ".join(
            each.name for each in BUILT_IN.values() if each.content == "table" and key in each.keys
        )
        allowed = f"not applicable with method {table.method}" + (f", only with {heeding}" if heeding else "")
        path = ("table", "quality", name) if section == "quality" else ("table", name)
        yield fault(path, list(value) if isinstance(value, tuple) else value, allowed)


UNHEEDED = ("preserve", "relax", "tau_argus", "zeros")
"""Keys of `[table]` that no third-party method uses."""


def _acceptances(spec: Specification, table: Table) -> Iterator[Fault]:
    for name, reason in table.quality.accept.items():
        key = ("table", "quality", "accept", name)
        if name not in HELD_BY_DEFAULT:
            yield fault(key, name, ", ".join(HELD_BY_DEFAULT), choices=HELD_BY_DEFAULT)
        elif not reason.strip():
            yield fault(key, reason, "the reason, and by whom")


HELD_BY_DEFAULT = ("max_grand_total_change",)
"""Limits of `[table.quality]` that a steward can accept by name in `table.quality.accept`."""


def _limits() -> tuple[str, ...]:
    """Return the faults of the limits of `[table.quality]`, which apply to measures of the built-in
    methods.
    """
    return tuple(f"quality.{name}" for name in TableQuality.model_fields)


def _rounding(spec: Specification, table: Table) -> Iterator[Fault]:
    if table.method not in ("rounding", "small_count_rounding"):
        return
    if not table.counts:
        allowed = (
            '"adjustment" or "suppression", because only unweighted numbers of contributors can be rounded'
        )
        yield fault(("table", "method"), table.method, allowed)
    least = table.minimum_frequency or spec.release.k
    if table.base is None:
        yield fault(("table", "base"), NOTHING, f"a base for rounding, at least {least}")
    elif table.base < least:
        allowed = (
            f"at least {least} (the minimum frequency), because with less a cell would show that it is too "
            "small"
        )
        yield fault(("table", "base"), table.base, allowed)


def _relaxation(spec: Specification, table: Table) -> Iterator[Fault]:
    unfit = [step for step in table.relax if (step == "adjacent") != (table.method == "rounding")]
    if unfit:
        allowed = '"adjacent" if cells are rounded, otherwise "capacities" and "fixed"'
        yield fault(("table", "relax"), unfit, allowed)
    if len(set(table.relax)) < len(table.relax):
        yield fault(
            ("table", "relax"),
            list(table.relax),
            ("each step only once, in the order in which they are tried"),
        )


def _dumped(table: Table) -> list[dict[str, object]]:
    return [rule.model_dump() for rule in table.dominance]


def _rules(spec: Specification, table: Table) -> Iterator[Fault]:
    if table.q_percent != 100 and (table.p_percent is None or table.p_percent >= table.q_percent):
        yield fault(("table", "q_percent"), table.q_percent, "more than table.p_percent")
    if table.kind == "frequency":
        if table.dominance:
            yield fault(
                ("table", "dominance"),
                _dumped(table),
                "not applicable to counts, in which every contributor contributes one",
            )
        if table.p_percent is not None:
            allowed = "not applicable to counts, in which every contributor contributes one"
            yield fault(("table", "p_percent"), table.p_percent, allowed)
    if table.source == "microdata":
        return
    known = len(table.largest)
    if any(rule.n > known for rule in table.dominance):
        allowed = f"n of at most {known}, because table.largest names this many columns"
        yield fault(("table", "dominance"), _dumped(table), allowed)
    if table.p_percent is not None and known < 2:
        yield fault(
            ("table", "p_percent"), table.p_percent, "not applicable unless table.largest names 2 columns"
        )
    if table.minimum_frequency is not None and table.contributors is None and table.kind == "magnitude":
        yield fault(
            ("table", "minimum_frequency"), table.minimum_frequency, "not applicable without contributors"
        )
    rules = (
        table.contributors,
        table.dominance or None,
        table.p_percent,
        table.lower_protection,
        table.status,
    )
    if table.kind == "magnitude" and not any(rule is not None for rule in rules):
        allowed = "a rule: contributors, dominance, p_percent, protection columns or status"
        yield fault(("table",), NOTHING, allowed)


def _publication(spec: Specification, table: Table) -> Iterator[Fault]:
    if table.tau_argus and table.hierarchies:
        allowed = "false if levels are columns; write them as table.parents of one column"
        yield fault(("table", "tau_argus"), True, allowed)
    if spec.publish.format != "parquet":
        yield fault(("publish", "format"), spec.publish.format, "parquet, the only format of tables")


def _missing(spec: Specification, table: Table) -> Iterator[Fault]:
    if spec.missing.numeric != "reject" and not spec.quasi_identifiers:
        allowed = "reject, because a table has no clusters in which numbers could be missing"
        yield fault(("missing", "numeric"), spec.missing.numeric, allowed)
