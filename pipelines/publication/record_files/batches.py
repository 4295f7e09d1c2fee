"""Record files of a release, read in order, with the column that is stored in their folder names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.intake.contract import Contract
from microguard.pipelines.publication.record_files.partitions import partition_of

#: Maximum number of records in memory at a time.
ROWS = 65_536


def record_batches(files: Sequence[Path], contract: Contract) -> Iterator[pa.RecordBatch]:
    """Read records in the order of the files, with the contract's columns; dictionaries are decoded.

    Parameters
    ----------
    files : sequence of Path
        Files in the published layout: folder names have the column of `Contract.partition_by`.
    """
    schema = contract.plain
    for path in files:
        folder = partition_of(path.as_posix())
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(ROWS):
                columns = [
                    pa.repeat(pa.scalar(folder[entry.name]).cast(entry.type), len(batch))
                    if entry.name == contract.partition_by
                    else batch[entry.name].cast(entry.type)
                    for entry in schema
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)
