"""The public manifest of a protected table: what is guaranteed, what is not, how the files are to be read.

Nothing in it is computed from original values: neither which cells are sensitive nor how many.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from pipelines.publication.manifest import DIFFERENCING
from pipelines.publication.stage import table_files
from pipelines.tables.cell_keys.noise import noise_table
from pipelines.tables.files import FOLDER, columns_of, value_type
from pipelines.tables.read_back import WrittenTable, levels_beside
from schemas.specification.model import Specification
from schemas.specification.table import Table

GUARANTEE = (
    "Cells that the disclosure rule finds sensitive are published at a value at least as far from their own "
    "as the rule asks for, others are changed a little so that every total is the sum of its parts, to the "
    "last digit."
)
COUNTS_GUARANTEE = (
    "Small counts, genuine ones among them, are published at 0, at the base or at twice the base, by a "
    "secret draw whose expectation is the true count; others are changed a little so that every total is the "
    "sum of its parts."
)
ROUNDED_GUARANTEE = (
    "Every cell is published at a multiple of {base}, and every total is the sum of its parts. A count "
    "between two multiples goes to the one or the other by a secret draw, the likelier the nearer it is; a "
    "multiple stays, and nobody can tell."
)
NOISY_GUARANTEE = (
    "Every count has noise of mean 0, by keys of the records behind it: it is off by {largest} at the "
    "most, no count below {least} is published, and the same records have the same noise in every table."
)
NOISY_TOTALS = (
    "Totals do not add up: every cell, totals included, has noise of its own. Take the published total "
    "instead of the sum of its parts, whose errors add up."
)
WITHIN_NOISE = (
    "a true count is at most {largest} away from the published one, that the noise has variance "
    "{variance:g}, that every true total is the sum of its parts, and that a total which is published "
    "otherwise than its only part above 0 has records in the others. How much all published cells say "
    "together is limited. Tables of other periods have new noise wherever a record came or went: whoever "
    "knows that a count stayed the same over many of them can average it."
)
INEXACT = "Any value may differ from the true one: do not read small differences between cells."
ATTACKER = (
    "The protection holds against an attacker who knows the method, its parameters, every published number "
    "and which cells there are, but not the key of the agency. Such an attacker knows that "
)
BANDS = (
    "a sensitive value lies in one of two bands, above or below the published one, and whoever learns in "
    "which of them knows it as closely as that band is wide."
)
WITHIN_A_BASE = (
    "a true count is less than {base} away from the published one. Tables of other periods are rounded "
    "anew where any of their cells changed: whoever knows that a count stayed the same over many of them "
    "can average it."
)
ONE_VALUE = (
    "Cells of the same source are published with the same value in every table, so that several tables say "
    "no more about a cell than one of them. Microdata made from the same records may."
)
ABSENT = (
    "A cell that does not occur had no contributor, or fewer than {least} who contribute nothing; no cell is "
    "added."
)
COUNTS_ZEROS = (
    "A zero is no evidence of absence, nor is a code that is not listed: small counts are published as 0 "
    "too, and codes of nothing but zeros are left out.",
    "No cell of 0 is listed, whether nobody was there or a small count was published as 0.",
)


RELAXED = (
    "The table could not be protected within the limits set on changes of cells that are not sensitive. As "
    "little as had to gave way, in the order stated: {}."
)


RELAXED_ROUNDING = (
    "Multiples next to the true counts did not add up: as few cells as could be found were let go further, "
    "and of these a true count may be farther away than said above."
)


def table_limits(specification: Specification, table: Table) -> tuple[str, ...]:
    """What a reader of this table must know."""
    if table.method == "cell_key":
        known = WITHIN_NOISE.format(**_noise(specification))
        return (INEXACT, NOISY_TOTALS, ATTACKER + known, ONE_VALUE, COUNTS_ZEROS[0])
    known = BANDS if table.base is None else WITHIN_A_BASE.format(base=table.base)
    absent = ABSENT.format(least=table.minimum_frequency or specification.release.k)
    if table.counts and table.levels == "secret":
        absent = COUNTS_ZEROS[table.zeros == "omit"]
    return (INEXACT, ATTACKER + known, ONE_VALUE, absent)


def _noise(specification: Specification) -> dict[str, float]:
    parameters = noise_table(specification).parameters
    return {"largest": parameters.largest, "variance": parameters.variance, "least": parameters.k}


def _guarantee(specification: Specification, table: Table) -> str:
    if table.method == "cell_key":
        return NOISY_GUARANTEE.format(**_noise(specification))
    if table.base is not None:
        return ROUNDED_GUARANTEE.format(base=table.base)
    return COUNTS_GUARANTEE if table.counts and table.levels == "secret" else GUARANTEE


def _relaxed(table: Table, steps: tuple[str, ...]) -> str:
    return RELAXED.format(", ".join(steps)) if table.base is None else RELAXED_ROUNDING


def _method(specification: Specification, table: Table) -> dict[str, Any]:
    """The method by its name, with what a reader needs to check the files against it."""
    if table.method == "cell_key":
        return {"name": "cell keys", **_noise(specification)}
    if table.base is None:
        preserved = table.preserve.model_dump(exclude_none=True)
        return {"name": "controlled tabular adjustment", **({"preserved": preserved} if preserved else {})}
    return {"name": "controlled rounding", "base": table.base}


def _groupings(table: Table, written: WrittenTable) -> list[dict[str, Any]]:
    """Further hierarchies over a column, with its codes: tables of both must agree."""
    return [
        {
            "column": finer,
            "levels": list(levels_beside(table, finer)),
            "above": list(above),
            "codes": {
                row[0]: list(row[1:]) for row in sorted(codes[[finer, *above]].itertuples(index=False))
            },
        }
        for (finer, above), codes in written.groupings.items()
    ]


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
        "guarantee": _guarantee(specification, table),
        "limits": [
            *table_limits(specification, table),
            *([_relaxed(table, written.relaxed)] if written.relaxed else []),
            *([DIFFERENCING] if successor else []),
        ],
        "method": _method(specification, table),
        "kind": table.kind,
        "value": {"name": table.value_name, "type": str(value_type(table))},
        "total": table.total,
        "zeros": table.zeros,
        "cells": written.cells,
        **({"groupings": _groupings(table, written)} if written.groupings else {}),
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
