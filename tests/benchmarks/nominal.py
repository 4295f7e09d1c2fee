"""Nominal methods on large files, in partitions and by region, with certificates; and local suppression.

`microguard benchmark papers` has samples of 200 records. Times are CPU seconds of one core. Every figure is
recomputed by independent code before it is printed, and targets are asserted. After a kill, the next call
with the same code continues.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.benchmarks.combinations import certificates, in_parts, regions, scale, value_suppression
from tests.benchmarks.parts import Parts
from tests.benchmarks.table import Table


def run(quick: bool = False) -> Iterator[Table]:
    """Return all tables; quick: smaller files."""
    parts = Parts("nominal-quick" if quick else "nominal", "combinations")
    for part in (scale, in_parts, regions, certificates, value_suppression):
        for name, make in part.tables(quick).items():
            yield parts.table(name, make)
    parts.forget()
