"""Build the public manifest of a protected table: guarantee, limits, layout of the files.

The manifest contains nothing computed from original values: neither which cells are sensitive nor how many.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from microguard.pipelines.engine.versions import microguard_version
from microguard.pipelines.guarantees.table_files import STATUS
from microguard.pipelines.guarantees.tables import TableGuarantee
from microguard.pipelines.publication.manifest import DIFFERENCING
from microguard.pipelines.publication.stage import table_files
from microguard.pipelines.tables.files import FOLDER, columns_of, value_type
from microguard.pipelines.tables.groupings import CodeGroups
from microguard.pipelines.tables.read_back import WrittenTable
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table import Table

RELAXED = (
    "The table could not be protected within the limits set on changes of cells that are not sensitive. The "
    "following limits were relaxed as little as necessary, in this order: {}."
)
SWAPPED = (
    "Before the cells were computed, records at risk exchanged their area with similar records: cells by "
    "area contain the exchanged records. Variables that describe an area and were not exchanged may "
    "contradict it."
)
RELAXED_ROUNDING = (
    "Adjacent multiples of the true counts did not add up. As few cells as possible were moved further; "
    "their true counts may differ by more than stated above."
)


def layout_of(
    table: Table, contents: Mapping[str, pa.Table], groupings: CodeGroups | None = None
) -> dict[str, Any]:
    """Describe the columns and codes of the files of a table, for readers.

    Parameters
    ----------
    contents : mapping of file name to published cells
    groupings : mapping, optional
        A column and the columns above it in a further hierarchy -> its codes with the codes above them. Only
        codes that a file contains are described: other codes may occur in the records and be hidden.
    """
    described = _groupings(table, contents, groupings or {})
    return {
        "kind": table.kind,
        "value": {"name": table.value_name, "type": str(value_type(table))},
        "total": table.total,
        "zeros": table.zeros,
        **({"groupings": described} if described else {}),
        **(
            {"suppressed": True} if any(each.column_names[-1] == STATUS for each in contents.values()) else {}
        ),
        "tables": [
            {
                "file": f"{FOLDER}/{name}",
                "columns": columns_of(table, dimensions),
                "dimensions": [
                    {"levels": list(table.levels_of(each)), "parents": table.parents.get(each)}
                    for each in dimensions
                ],
            }
            for dimensions, name in zip(table.tables, table_files(table.tables), strict=True)
        ],
    }


def table_manifest(
    specification: Specification,
    table: Table,
    guarantee: TableGuarantee,
    release_id: str,
    written: WrittenTable,
    successor: bool,
) -> dict[str, Any]:
    """Return the contents of ``manifest.json`` (checksums are added when the files are copied).

    Parameters
    ----------
    successor : bool
        Whether another release was ever published under this name.
    """
    stated, layout = guarantee.manifest(written.count), dict(written.layout)
    return {
        "release_id": release_id,
        "name": specification.release.name,
        "software": {"name": "microguard", "version": microguard_version()},
        "content": FOLDER,
        "guarantee": stated["guarantee"],
        "limits": [
            *guarantee.limits,
            *([SWAPPED] if table.swapped else []),
            *([_relaxed(table, written.relaxed)] if written.relaxed else []),
            *([DIFFERENCING] if successor else []),
        ],
        "method": stated["method"],
        **{name: layout.pop(name) for name in ("kind", "value", "total", "zeros")},
        "cells": stated["cells"],
        **layout,
    }


def _relaxed(table: Table, steps: tuple[str, ...]) -> str:
    return RELAXED.format(", ".join(steps)) if table.base is None else RELAXED_ROUNDING


def _groupings(table: Table, contents: Mapping[str, pa.Table], groupings: CodeGroups) -> list[dict[str, Any]]:
    """Describe further hierarchies over a column, with the codes of the column."""
    return [
        {
            "column": finer,
            "levels": list(levels_beside(table, finer)),
            "above": list(above),
            "codes": {
                row[0]: list(row[1:])
                for row in sorted(codes[[finer, *above]].itertuples(index=False))
                if row[0] in _published_codes(contents, finer)
            },
        }
        for (finer, above), codes in groupings.items()
    ]


def _published_codes(contents: Mapping[str, pa.Table], column: str) -> set[str]:
    """Return the codes of a column that occur in a file."""
    return {
        code
        for content in contents.values()
        if column in content.column_names
        for code in content[column].unique().to_pylist()
    }


def levels_beside(table: Table, finer: str) -> tuple[str, ...]:
    """Return the published columns of the first hierarchy that has a column with a further grouping."""
    hierarchy = next(each for each in table.hierarchies if finer in each)
    return tuple(name for name in hierarchy if name in table.columns)
