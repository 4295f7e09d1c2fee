"""How the record files lie: ``publish.format``, ``partition_by`` and ``csv``, and what these cannot carry."""

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
    """The contract with the layout that a specification asks for; a partition column has no categories.

    Raises
    ------
    InputRejected
        Where a column does not come back from it as the input has it.
    """
    row = table_format(publish.format)
    names = row.not_carried(contract.schema)
    if names:
        title = row.name.capitalize()
        raise InputRejected(
            f"[publish] format: a table in the format {title} cannot hold {', '.join(names)} as the input "
            "has "
            f"it: {title} has no such type, or names differ in case alone. Change the file, or set the key "
            "to "
            '"parquet".'
        )
    if publish.partition_by is not None:
        contract = _partitioned(contract, publish.partition_by)
    if publish.csv:
        names = csv_file.not_carried(contract.plain)
        if names:
            raise InputRejected(
                f"[publish] csv: a CSV file cannot hold {', '.join(names)} as the input has it, as it holds "
                "text, numbers, dates and times. Change the file, or leave the key out."
            )
    return replace(contract, csv=publish.csv)


def require_regions(contract: Contract, strata: pa.Table) -> None:
    """Refuse regions that cannot name a folder, before work is spent on them.

    Parameters
    ----------
    strata : pyarrow.Table
        Of the screened records, by `REGION`.

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
            f"[publish] partition_by: {name} is neither text nor a whole number, and no other type comes "
            "back from the name of a folder. Change the file, or leave the key out."
        )
    if len(contract.schema) == 1:
        raise InputRejected(
            f"[publish] partition_by: there is no column beside {name}, and files without columns hold no "
            "records. Publish another one, or leave the key out."
        )
    schema = contract.schema.set(position, pa.field(name, kind))
    categories = {key: values for key, values in contract.categories.items() if key != name}
    return replace(contract, schema=schema, categories=categories, partition_by=name)
