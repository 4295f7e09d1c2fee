"""The public manifest of a protected table: what is guaranteed, what is not, how the files are to be read.

Nothing in it is computed from original values: neither which cells are sensitive nor how many.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from pipelines.publication.manifest import DIFFERENCING
from pipelines.publication.stage import table_files
from pipelines.tables.files import FOLDER, columns_of, value_type
from pipelines.tables.read_back import WrittenTable
from schemas.specification.model import Specification
from schemas.specification.table import Table

GUARANTEE = (
    "Cells that the disclosure rule finds sensitive are published at a value at least as far from their own "
    "as the rule asks for, others are changed a little so that every total is the sum of its parts, to the "
    "last digit."
)
LIMITS = (
    "Any value may differ from the true one: do not read small differences between cells.",
    "A cell that does not occur had no contributor; cells are neither added nor removed.",
    "Protection holds against an attacker who knows the rule, the margins and how far cells may move. It "
    "does not hold against comparison with another table or microdata made from the same records.",
)


def table_manifest(
    specification: Specification, table: Table, release_id: str, written: WrittenTable, successor: bool
) -> dict[str, Any]:
    """Contents of ``manifest.json`` (checksums are added when the files are copied).

    Parameters
    ----------
    successor : bool
        Whether another release was ever published under this name.
    """
    return {
        "release_id": release_id,
        "name": specification.release.name,
        "software": {"name": "microguard", "version": version("microguard")},
        "content": FOLDER,
        "guarantee": GUARANTEE,
        "limits": [*LIMITS, *([DIFFERENCING] if successor else [])],
        "method": {"name": "controlled tabular adjustment"},
        "kind": table.kind,
        "value": {"name": table.value_name, "type": str(value_type(table))},
        "total": table.total,
        "cells": written.cells,
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
