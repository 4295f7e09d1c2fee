"""Checks of the layout of a release (`publish.partition_by`, `csv`, `catalog`, `table`) and of
`input.table`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from microguard.schemas.specification.faults import NOTHING, Fault, fault
from microguard.schemas.specification.model import Specification

PLAIN_NAME = re.compile(r"[^\W_][\w.-]{0,99}")
"""Column names that every reader reads identically from a folder name: DuckDB and Polars do not decode
characters there, and pyarrow ignores names that begin with "_"."""


def layout_faults(spec: Specification) -> Iterator[Fault]:
    """Return the faults of layout keys that other keys exclude."""
    key, name = ("publish", "partition_by"), spec.publish.partition_by
    if spec.table is not None:
        allowed = "not applicable, because tables are published in files of their own"
        if name is not None:
            yield fault(key, name, allowed)
        if spec.publish.csv:
            yield fault(("publish", "csv"), True, f"{allowed}, in addition to SDMX-CSV")
    elif name is not None:
        yield from _partition(spec, name)
    yield from _catalog(spec)
    yield from _input_table(spec)


def _catalog(spec: Specification) -> Iterator[Fault]:
    catalog, table = spec.publish.catalog, spec.publish.table
    if catalog is None:
        if table is not None:
            yield fault(("publish", "table"), table, "not applicable without publish.catalog")
        return
    if table is None:
        allowed = f'the table in the catalogue, such as "statistics.{spec.release.name}"'
        yield fault(("publish", "table"), NOTHING, allowed)
    if spec.publish.format != "iceberg":
        yield fault(("publish", "format"), spec.publish.format, "iceberg, because publish.catalog is given")
    if spec.table is not None:
        yield fault(
            ("publish", "catalog"), catalog, "not applicable to a protected table, which has no records"
        )


def _input_table(spec: Specification) -> Iterator[Fault]:
    source = spec.input
    if source.table is None:
        if not source.path:
            yield fault(("input", "path"), NOTHING, "a path, or the key input.table")
        if source.catalog is not None:
            yield fault(("input", "catalog"), source.catalog, "not applicable without input.table")
        return
    if source.path:
        yield fault(("input", "table"), source.table, "not applicable next to input.path")
    if source.format == "csv":
        yield fault(("input", "format"), "csv", "not applicable to a table")


def _partition(spec: Specification, name: str) -> Iterator[Fault]:
    key = ("publish", "partition_by")
    others = [each.casefold() for each in spec.published if each != name]
    if spec.region is None:
        yield fault(key, name, "not applicable, because no variable has the role region")
    elif name != spec.region:
        allowed = (
            f"{spec.region}, the variable of role region, because no cluster contains records of two regions"
        )
        yield fault(key, name, allowed, choices=(spec.region,))
    elif not PLAIN_NAME.fullmatch(name):
        allowed = (
            'a name of letters, digits, "_", "." and "-" that begins with a letter or digit, because '
            "folders are named by it"
        )
        yield fault(key, name, allowed)
    elif name.casefold() in others:
        yield fault(
            key,
            name,
            ("a name that no other published column has, ignoring case, because folders are named by it"),
        )
    if spec.publish.format != "parquet":
        allowed = (
            f"not applicable if publish.format is {spec.publish.format}, whose table has files of its own"
        )
        yield fault(key, name, allowed)
