"""Public manifest: guarantees, limits, and the content of the files.

The manifest has no number computed from original values, except measures in ``publish.disclose``. It has
neither the seed nor a fingerprint of the input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from microguard.pipelines.engine.versions import microguard_version
from microguard.pipelines.guarantees.guarantee import Guarantee
from microguard.pipelines.guarantees.record_files import RecordFiles
from microguard.pipelines.intake.contract import Contract
from microguard.pipelines.intake.recode import list_recodes
from microguard.pipelines.publication.read_back import Written
from microguard.pipelines.publication.record_files.csv_file import CSV, READING
from microguard.pipelines.publication.stage import Staged, table_files
from microguard.schemas.specification.model import Specification

DIFFERENCING = (
    "An earlier release was made under this name from another input or specification. Copies of it can be "
    "differenced with this one."
)
FORMULAS = (
    "A spreadsheet interprets text that begins with =, +, -, @, a tab or a line break as a formula, and "
    "runs it. The CSV file contains such text, unchanged, in {}: import these columns as text."
)
FLOATS = "-0.0 is written as 0.0, and every NaN with the same bits; no measure distinguishes them."
SIGNIFICANT_DIGITS = 2


def manifest(
    specification: Specification,
    release_id: str,
    staged: Staged,
    written: Written,
    guarantees: Sequence[Guarantee[RecordFiles]],
    limits: Sequence[str],
    tables: Sequence[tuple[str, ...]],
    disclosed: Mapping[str, float],
    successor: bool,
) -> dict[str, Any]:
    """Return the content of ``manifest.json`` (checksums are added when the files are copied).

    Parameters
    ----------
    guarantees : sequence of Guarantee
        In the order of `written.counts`.
    limits : sequence of str
        Statements of what the guarantees and the method do not cover.
    disclosed : mapping
        Measures against the original that a steward allows to be public; rounded here to two digits.
    successor : bool
        Whether another release was ever published under this name.
    """
    further = [DIFFERENCING] if successor else []
    if staged.formulas:
        further.append(FORMULAS.format(", ".join(staged.formulas)))
    stated: dict[str, Any] = {}
    for guarantee, count in zip(guarantees, written.counts, strict=True):
        stated |= guarantee.manifest(count)
    return {
        "release_id": release_id,
        "name": specification.release.name,
        "software": {"name": "microguard", "version": microguard_version()},
        **stated,
        "limits": [*limits, *further],
        "method": {
            "name": specification.method.name,
            "effort": specification.method.effort,
            "algorithm": specification.method.algorithm,
            "representative": specification.method.representative,
            "min_diversity": specification.method.min_diversity,
            "weighted_by": specification.weight_of_means,
        },
        "recodes": list_recodes(specification),
        "records": written.records,
        "columns": [_column(entry, specification, staged.contract) for entry in staged.contract.schema],
        "tables": [
            {"file": f"tables/{name}", "variables": list(table)}
            for table, name in zip(tables, table_files(tables), strict=True)
        ],
        "disclosed": {name: float(f"{value:.{SIGNIFICANT_DIGITS}g}") for name, value in disclosed.items()},
        **_layout(staged.contract),
    }


def _layout(contract: Contract) -> dict[str, Any]:
    """Return the description of the file layout if it differs from the default."""
    layout: dict[str, Any] = {}
    if contract.partition_by is not None:
        layout["partitioned_by"] = contract.partition_by
    if contract.csv:
        layout["csv"] = {"file": CSV, "reading": READING}
    return layout


def _column(entry: pa.Field, specification: Specification, contract: Contract) -> dict[str, Any]:
    variable = specification.variables[entry.name]
    described: dict[str, Any] = {
        "name": entry.name,
        "type": str(entry.type),
        "role": variable.role,
        "kind": variable.kind,
        "protected": variable.role == "quasi_identifier",
    }
    if entry.name in specification.derived:
        described["derived"] = specification.derived[entry.name]
    if entry.name in contract.declared:
        described["type_in_input"] = contract.declared[entry.name]
    if pa.types.is_floating(entry.type) and entry.name in specification.published_as_it_is:
        described["floats"] = FLOATS
    return described
