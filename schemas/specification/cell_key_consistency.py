"""Checks of `[table]` if cells are published with cell-key noise."""

from __future__ import annotations

from collections.abc import Iterator

from microguard.schemas.specification.faults import NOTHING, Fault, fault
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table import Table

UNSUPPORTED = ("parts", "shadow", "a_priori", "zero_safety_range", "relax", "holding", "request", "waiver")
"""Keys of `[table]` that cell-key noise of amounts does not support."""


def cell_key_faults(spec: Specification, table: Table) -> Iterator[Fault]:
    """Return the faults of a table that is published with cell-key noise."""
    if table.method != "cell_key":
        return
    yield from _records(spec, table)
    if table.kind == "frequency":
        yield from _noise(spec, table)
        yield from _not_for_counts(table)
    else:
        yield from _amounts(table)
    if table.zeros != "all":
        yield fault(
            ("table", "zeros"),
            table.zeros,
            ('"all" with cell-key noise of counts, because all zeros must look the same'),
        )
    if table.swapped:
        yield from _swapped(spec, table)
    if table.tau_argus:
        yield fault(
            ("table", "tau_argus"),
            True,
            ("false with cell-key noise of counts, because totals are not additive"),
        )


def _swapped(spec: Specification, table: Table) -> Iterator[Fault]:
    """Return the faults of keys with which record swapping would exchange other units for this table than for
    the records or other tables.
    """
    if not spec.swapped:
        allowed = "swapping, because table.swapped counts records whose areas were exchanged"
        yield fault(("method", "name"), spec.method.name, allowed)
        return
    if spec.household is None:
        allowed = (
            "a variable of role household, by whose key units are exchanged; without one, the draws depend "
            "on the columns that are read, and two tables would exchange other records"
        )
        yield fault(("table", "swapped"), True, allowed)
    if spec.missing.max_rejected:
        allowed = "0 with table.swapped, because tables that reject other records would exchange other units"
        yield fault(("missing", "max_rejected"), spec.missing.max_rejected, allowed)
    if table.value in spec.quasi_identifiers:
        allowed = (
            "a variable of role sensitive or other, because swapping reads quasi-identifiers as they are "
            "published"
        )
        yield fault(("table", "value"), table.value, allowed)


def _records(spec: Specification, table: Table) -> Iterator[Fault]:
    if table.weighted:
        allowed = (
            "false with cell-key noise, because a key belongs to a record and not to the records that it "
            "represents"
        )
        yield fault(("table", "weighted"), True, allowed)
    if table.source != "microdata":
        yield fault(("table", "source"), table.source, '"microdata", because keys belong to records')
    elif spec.unit is None:
        yield fault(
            ("table", "method"), table.method, "a variable of role unit, from which keys are computed"
        )


def _noise(spec: Specification, table: Table) -> Iterator[Fault]:
    least = table.minimum_frequency or spec.release.k
    if least < 2:
        yield fault(
            ("table", "minimum_frequency"),
            least,
            ("at least 2, because a minimum frequency of 1 protects nothing"),
        )
    if table.noise_table is not None:
        for key in ("largest_noise", "noise_variance"):
            if getattr(table, key) is not None:
                yield fault(
                    ("table", key),
                    getattr(table, key),
                    "not applicable next to noise_table, which defines the same",
                )
        return
    largest = least + 2 if table.largest_noise is None else table.largest_noise
    if largest < least:
        allowed = (
            f"at least {least} (the minimum frequency), because with less a count of 1 could not become 0 "
            "or the minimum frequency"
        )
        yield fault(("table", "largest_noise"), largest, allowed)
    if table.noise_variance is not None and table.noise_variance >= largest**2:
        allowed = f"less than {largest**2}, the square of the largest noise"
        yield fault(("table", "noise_variance"), table.noise_variance, allowed)


def _not_for_counts(table: Table) -> Iterator[Fault]:
    for key in ("small_noise_table", "noise_scaling"):
        if getattr(table, key) is not None:
            yield fault(("table", key), NOTHING, "not applicable to counts, whose noise has no scale")


def _amounts(table: Table) -> Iterator[Fault]:
    """Return the faults of keys that noise of amounts does not support, or that it needs and that are
    missing.
    """
    for key, needed in (
        (
            "noise_table",
            ("a file with a p-table, because the noise of amounts requires an office's own p-table"),
        ),
        ("noise_scaling", "the section, because the scale of the noise depends on the largest contributions"),
    ):
        if getattr(table, key) is None:
            yield fault(("table", key), NOTHING, needed)
    for key in ("largest_noise", "noise_variance"):
        if getattr(table, key) is not None:
            yield fault(
                ("table", key),
                getattr(table, key),
                "not applicable to amounts, for which noise_table defines the same",
            )
    for key in UNSUPPORTED:
        if getattr(table, key):
            allowed = "not applicable with cell-key noise of amounts"
            yield fault(("table", key), NOTHING, allowed)
    if table.groupings:
        allowed = "one hierarchy for each column with cell-key noise of amounts"
        yield fault(("table", "hierarchies"), [list(each) for each in table.hierarchies], allowed)
    if table.preserve.model_fields_set:
        yield fault(("table", "preserve"), NOTHING, "not applicable with cell-key noise of amounts")
    scaling = table.noise_scaling
    if scaling is None:
        return
    section = ("table", "noise_scaling")
    if scaling.p_large > scaling.p_small:
        yield fault((*section, "p_large"), scaling.p_large, f"{scaling.p_small} (p_small) or less")
    if scaling.epsilon[0] != 1 or list(scaling.epsilon) != sorted(scaling.epsilon, reverse=True):
        yield fault(
            (*section, "epsilon"), list(scaling.epsilon), ("1 first, then factors that do not increase")
        )
