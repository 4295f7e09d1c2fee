"""Audit what Parquet files hold next to their values: metadata, categories and statistics.

Readers of a file also read its footer. A minimum, maximum or number that is not that of the values may be
that of other records. The statistics of every column of every row group are compared with those that Arrow
writes for the same values.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from microguard.pipelines.guarantees.queries import number, quiet_engine, quoted_text

#: Fields of a column in a footer, of which DuckDB shows more than Arrow, and what may not be in them. Earlier
#: versions of the format have other fields for the two ends, and a Bloom filter tells which values occur.
_FURTHER = {
    "stats_min": "stats_min IS NOT NULL AND stats_min IS DISTINCT FROM stats_min_value",
    "stats_max": "stats_max IS NOT NULL AND stats_max IS DISTINCT FROM stats_max_value",
    "bloom_filter_offset": "bloom_filter_offset IS NOT NULL",
}
_KEPT_METADATA = {b"ARROW:schema", b"PARQUET:field_id"}


def has_foreign_metadata(path: Path) -> bool:
    """Return whether footer, Arrow schema or a column has metadata, in which other programs store sources."""
    schema = pq.read_schema(path)
    of_columns = {key for entry in schema for key in entry.metadata or {}}
    keys = {*(pq.read_metadata(path).metadata or {}), *(schema.metadata or {}), *of_columns}
    return bool(keys - _KEPT_METADATA)


def stale_dictionaries(path: Path) -> int:
    """Count the columns of a file whose dictionary has texts or categories that do not occur.

    Parquet writes the distinct texts of a column into a dictionary page, whatever the type of the column.
    """
    written: dict[int, list[pa.Array]] = {}
    occurring: dict[int, list[pa.Array]] = {}
    with pq.ParquetFile(path, read_dictionary=pq.read_schema(path).names) as file:
        for group in range(file.num_row_groups):
            for place, column in enumerate(file.read_row_group(group).columns):
                if pa.types.is_dictionary(column.type):
                    array = column.combine_chunks()
                    written.setdefault(place, []).append(array.dictionary)
                    used = array.dictionary.take(array.indices.unique().drop_null())
                    occurring.setdefault(place, []).append(used)
    return sum(_distinct(texts) > _distinct(occurring[place]) for place, texts in written.items())


def _distinct(texts: list[pa.Array]) -> int:
    return len(pa.chunked_array(texts).unique())


def wrong_footers(files: Sequence[Path]) -> int:
    """Count the column chunks whose statistics differ from their values."""
    return _further_fields(files) + sum(map(wrong_chunks, files))


def _further_fields(files: Sequence[Path]) -> int:
    if not files:
        return 0
    with quiet_engine() as engine:
        listed = ", ".join(quoted_text(str(path)) for path in files)
        footers = f"parquet_metadata([{listed}])"
        shown = engine.sql(f"SELECT * FROM {footers} LIMIT 0").columns  # not the same in each version
        wrong = " OR ".join(condition for name, condition in _FURTHER.items() if name in shown)
        return number(engine, f"SELECT count(*) FROM {footers} WHERE {wrong or 'false'}")


def wrong_chunks(path: Path) -> int:
    """Count the column chunks of a file whose statistics differ from those of the same values."""
    wrong = 0
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            values = plain(file.read_row_group(group))
            stated, expected = file.metadata.row_group(group), _written(values)
            for place, column in enumerate(values.columns):
                chunk, again = stated.column(place), expected.column(place)
                wrong += chunk.has_column_index and not again.has_column_index  # it has the ends of each page
                if chunk.statistics is not None:
                    wrong += _differ(chunk.statistics, again.statistics, column)
    return wrong


def plain(records: pa.Table) -> pa.Table:
    """Return the records without dictionaries, which may have categories that do not occur, and views."""
    return records.cast(pa.schema([pa.field(entry.name, _plain(entry.type)) for entry in records.schema]))


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return kind.value_type
    return {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}.get(kind, kind)


def _written(records: pa.Table) -> pq.RowGroupMetaData:
    """Return the metadata of the only row group of a file with these records."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, records.schema, compression="none", use_dictionary=False) as writer:
        writer.write_table(records, row_group_size=max(1, len(records)))
    return pq.read_metadata(pa.BufferReader(sink.getvalue())).row_group(0)


def _differ(stated: pq.Statistics, expected: pq.Statistics, column: pa.ChunkedArray) -> bool:
    """Return whether a statement about a column is not that of its values; a missing one states nothing."""
    if stated.has_null_count and stated.null_count != column.null_count:
        return True
    if stated.has_distinct_count and stated.distinct_count != pc.count_distinct(column).as_py():
        return True
    if not stated.has_min_max:
        return False
    ends = (stated.min, stated.max)
    return not expected.has_min_max or ends != (expected.min, expected.max)
