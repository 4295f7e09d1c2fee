"""Checks of `[table]` if counts are published with noise by cell keys."""

from __future__ import annotations

from collections.abc import Iterator

from microguard.schemas.specification.faults import Fault, fault
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table import Table


def cell_key_faults(spec: Specification, table: Table) -> Iterator[Fault]:
    """Return the faults of a table that is published with noise by cell keys."""
    if table.method != "cell_key":
        return
    yield from _records(spec, table)
    yield from _noise(spec, table)
    if table.zeros != "all":
        yield fault(
            ("table", "zeros"), table.zeros, '"all" where counts have noise, as zeros must look alike'
        )
    if table.tau_argus:
        yield fault(("table", "tau_argus"), True, "false where counts have noise, as totals do not add up")


def _records(spec: Specification, table: Table) -> Iterator[Fault]:
    if not table.counts:
        allowed = (
            '"adjustment" or "suppression", as only numbers of contributors without weights are given noise'
        )
        yield fault(("table", "method"), table.method, allowed)
    if table.source != "microdata":
        yield fault(("table", "source"), table.source, '"microdata", as keys belong to records')
    elif spec.unit is None:
        yield fault(("table", "method"), table.method, "a variable of role unit, which keys are made of")


def _noise(spec: Specification, table: Table) -> Iterator[Fault]:
    least = table.minimum_frequency or spec.release.k
    if least < 2:
        yield fault(("table", "minimum_frequency"), least, "2 or more: of 1 there is nothing to hide")
    if table.noise_table is not None:
        for key in ("largest_noise", "noise_variance"):
            if getattr(table, key) is not None:
                yield fault(
                    ("table", key), getattr(table, key), "no such key next to noise_table, which has it"
                )
        return
    largest = least + 2 if table.largest_noise is None else table.largest_noise
    if largest < least:
        allowed = f"{least} (the minimum frequency) or more: with less a count of 1 could not reach it"
        yield fault(("table", "largest_noise"), largest, allowed)
    if table.noise_variance is not None and table.noise_variance >= largest**2:
        allowed = f"less than {largest**2}, the square of the largest noise"
        yield fault(("table", "noise_variance"), table.noise_variance, allowed)
