"""The public manifest: what is guaranteed, what is not, and what the files hold; nothing else.

No number computed from original values is in it, except measures that ``publish.disclose`` names; no
seed and no fingerprint of the input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import pyarrow as pa

from pipelines.intake.contract import Contract
from pipelines.intake.recode import recodes_of
from pipelines.publication.read_back import Written
from pipelines.publication.record_files.csv_file import CSV, READING
from pipelines.publication.stage import Staged, table_files
from schemas.specification.model import Specification

LIMITS = (
    "k-anonymity holds on the quasi-identifiers named here, together with the region, and on nothing else. "
    "It does not limit linkage by columns published as they are, inference in homogeneous or dominated "
    "clusters, or comparison with another release.",
    "Microaggregation shrinks variances, and totals of these records (weighted ones, where means are "
    "weighted) may be those of the original ones: a total that must be protected in a table must not come "
    "from the same microdata.",
    "Medians and medoids publish true values.",
    "A zero in a protected table is not evidence of absence.",
)
DIFFERENCING = (
    "An earlier release was made under this name from another input or specification. Copies of it can be "
    "differenced with this one."
)
NOT_JOINTLY = (
    "Each group of variables is k-anonymous with the region. "
    "The guarantee does not hold for the groups jointly."
)
COUNTED = (
    "k counts {}s: every combination is shared by records of at least k of them. They are not "
    "published, so only the number of records can be counted again on these files."
)
DIVERSE = (
    "Clusters hold at least {} different values of each sensitive variable. Whoever knows the protected "
    "variables of everybody, and the method, can ask which clusters were not made for lack of them: in our "
    "own attacks the odds of the boldest claims rose to two to three times what the shares in the classes "
    "say, in single small files to nine times."
)
FORMULAS = (
    "A spreadsheet takes text that begins with =, +, -, @, a tab or a line break for a formula, and runs it. "
    "The CSV file has such text, unchanged, in {}: import these columns as text."
)
FLOATS = "-0.0 is written as 0.0, and every NaN with the same bits: no measure tells them apart."
SIGNIFICANT_DIGITS = 2


def manifest(
    specification: Specification,
    release_id: str,
    staged: Staged,
    written: Written,
    tables: Sequence[tuple[str, ...]],
    disclosed: Mapping[str, float],
    successor: bool,
) -> dict[str, Any]:
    """Contents of ``manifest.json`` (checksums are added when the files are copied).

    Parameters
    ----------
    disclosed : mapping
        Measures against the original that a steward allows to be public; rounded to two digits here.
    successor : bool
        Whether another release was ever published under this name.
    """
    limits = [*LIMITS]
    if specification.counted is not None:
        limits.insert(0, COUNTED.format(specification.method.unit))
    if specification.groups:
        limits.insert(0, NOT_JOINTLY)
    if specification.method.min_diversity > 1:
        limits.append(DIVERSE.format(specification.method.min_diversity))
    if successor:
        limits.append(DIFFERENCING)
    if staged.formulas:
        limits.append(FORMULAS.format(", ".join(staged.formulas)))
    region = [specification.region] if specification.region else []
    return {
        "release_id": release_id,
        "name": specification.release.name,
        "software": {"name": "microguard", "version": version("microguard")},
        "guarantee": {
            "k": specification.release.k,
            "unit": specification.method.unit,
            "groups": [
                {
                    "name": group.name,
                    "variables": list(group.variables),
                    "with_region": region,
                    "smallest_class": written.smallest_class[group.name],
                    "median_class": written.median_class[group.name],
                    "classes": written.classes[group.name],
                }
                for group in specification.clusterings
            ],
            "jointly": not specification.groups,
        },
        "limits": limits,
        "method": {
            "name": specification.method.name,
            "effort": specification.method.effort,
            "algorithm": specification.method.algorithm,
            "representative": specification.method.representative,
            "min_diversity": specification.method.min_diversity,
            "weighted_by": specification.weight_of_means,
        },
        "recodes": recodes_of(specification),
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
    """What a reader must know of files that do not lie as by default."""
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
    if entry.name in contract.declared:
        described["type_in_input"] = contract.declared[entry.name]
    if pa.types.is_floating(entry.type) and entry.name in specification.published_as_it_is:
        described["floats"] = FLOATS
    return described
