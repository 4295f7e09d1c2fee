"""Layout of the record files (``publish.format``, ``partition_by``, ``csv``), and its conflicts."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from microguard.pipelines.intake.contract import Contract
from microguard.pipelines.intake.validate import REGION
from microguard.pipelines.publication.formats.table_format import table_format
from microguard.pipelines.publication.record_files import csv_file
from microguard.pipelines.publication.record_files.partitions import partition_type, require_partitions
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.sections import Publish


def laid_out(contract: Contract, publish: Publish) -> Contract:
    """Return the contract with the layout of a specification; the partition column is not categorical.

    Raises
    ------
    InputRejected
        If the layout cannot represent a column of the input.
    """
    row = table_format(publish.format)
    names = row.not_carried(contract.schema)
    if names:
        title = row.name.capitalize()
        raise InputRejected(
            f"[publish] format: expected columns that a table in {title} can hold, found others: it cannot "
            f"hold {', '.join(names)}, because {title} has no such type or does not distinguish upper and "
            "lower case in names. Change the file, or set publish.format to 'parquet'."
        )
    if publish.partition_by is not None:
        contract = _partitioned(contract, publish.partition_by)
    if publish.csv:
        names = csv_file.not_carried(contract.plain)
        if names:
            raise InputRejected(
                "[publish] csv: expected text, numbers, dates and times, found other types in "
                f"{', '.join(names)}, which a CSV file cannot represent. Change the file, or leave the key "
                "out."
            )
    return replace(contract, csv=publish.csv)


def require_regions(contract: Contract, strata: pa.Table) -> None:
    """Refuse regions that cannot be folder names, before the records are protected.

    Parameters
    ----------
    strata : pyarrow.Table
        Strata of the validated records, with `REGION`.

    Raises
    ------
    InputRejected
    """
    if contract.partition_by is not None:
        require_partitions(contract.partition_by, strata[REGION].unique().to_pylist())


def _partitioned(contract: Contract, name: str) -> Contract:
    position = contract.schema.get_field_index(name)
    kind = partition_type(contract.schema.field(position).type)
    if kind is None:
        raise InputRejected(
            "[publish] partition_by: expected text or whole numbers, which readers can read from a folder "
            f"name; found another type of {name}. Change the file, or leave the key out."
        )
    if len(contract.schema) == 1:
        raise InputRejected(
            f"[publish] partition_by: expected at least one further column, found only {name}; files "
            "without columns contain no records. Publish another column, or leave the key out."
        )
    schema = contract.schema.set(position, pa.field(name, kind))
    categories = {key: values for key, values in contract.categories.items() if key != name}
    return replace(contract, schema=schema, categories=categories, partition_by=name)
