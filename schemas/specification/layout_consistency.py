"""Checks of `publish.partition_by` and `publish.csv`: the layout of the files of a release."""

from __future__ import annotations

import re
from collections.abc import Iterator

from microguard.schemas.specification.faults import Fault, fault
from microguard.schemas.specification.model import Specification

PLAIN_NAME = re.compile(r"[^\W_][\w.-]{0,99}")
"""What every reader takes for the same name of a column in that of a folder: DuckDB and Polars decode no
signs there, and pyarrow passes over what begins with "_"."""


def layout_faults(spec: Specification) -> Iterator[Fault]:
    """Return keys of the layout that other keys do not allow."""
    key, name = ("publish", "partition_by"), spec.publish.partition_by
    if spec.table is not None:
        allowed = "no such key, as tables are published in their own files"
        if name is not None:
            yield fault(key, name, allowed)
        if spec.publish.csv:
            yield fault(("publish", "csv"), True, f"{allowed}, with SDMX-CSV beside them")
    elif name is not None:
        yield from _partition(spec, name)


def _partition(spec: Specification, name: str) -> Iterator[Fault]:
    key = ("publish", "partition_by")
    others = [each.casefold() for each in spec.published if each != name]
    if spec.region is None:
        yield fault(key, name, "no such key, as no variable has the role region")
    elif name != spec.region:
        allowed = f"{spec.region}, the variable of role region: no cluster crosses its values"
        yield fault(key, name, allowed, choices=(spec.region,))
    elif not PLAIN_NAME.fullmatch(name):
        allowed = (
            'a name of letters, digits, "_", "." and "-" that begins with a letter or digit: it names folders'
        )
        yield fault(key, name, allowed)
    elif name.casefold() in others:
        yield fault(key, name, "a name that no other published column has, capitals or not: it names folders")
    if spec.publish.format != "parquet":
        allowed = (
            f"no such key where publish.format is {spec.publish.format}, whose table has files of its own"
        )
        yield fault(key, name, allowed)
