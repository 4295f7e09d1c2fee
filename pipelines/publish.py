"""Stage, and release: the only code that writes to the public area.

Staging lies in the evidence area. A release is copied from there under a hidden name, its checksums
are compared again, and it appears under its own name in one rename; ``current.json`` moves last.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pipelines.columns import column
from pipelines.contract import Contract
from pipelines.ledger import Entry, Ledger
from pipelines.places import Places, checksum, sync_folder, write_atomically
from pipelines.risk import content_of
from schemas.consistency import FREQUENCY
from schemas.errors import ProtectionFailed

RECORDS_PER_FILE = 500_000
ROW_GROUP = 131_072
_ORDER = "__order"


@dataclass(frozen=True)
class Staged:
    """A release that nobody has verified yet, in a private folder.

    Attributes
    ----------
    content : (int, int)
        Records and sum of row hashes, before they were written.
    checksums : mapping of file name to checksum
        Of every file, before anybody verified it: what is released must be these.
    """

    release_id: str
    folder: Path
    contract: Contract
    content: tuple[int, int]
    checksums: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        files = sorted(self.folder.rglob("*.parquet"))
        named = {path.relative_to(self.folder).as_posix(): checksum(path) for path in files}
        object.__setattr__(self, "checksums", named)

    @property
    def microdata(self) -> list[Path]:
        """The record files, in order."""
        return sorted((self.folder / "microdata").glob("*.parquet"))


def stage(
    frame: DataFrame,
    contract: Contract,
    tables: Mapping[tuple[str, ...], pa.Table],
    places: Places,
    release_id: str,
) -> Staged:
    """Write the protected records and tables to the staging folder of a release.

    Rows are distributed and ordered by a hash of the published row alone, so that their order says
    nothing about the input. Files carry the input's types, no metadata of it, and statistics and
    dictionaries of what is published only.

    Parameters
    ----------
    frame : DataFrame
        Exactly the published columns.
    contract : Contract
    tables : mapping of table to its cells
    places : Places
    release_id : str
    """
    folder = places.work(release_id, "staging")
    shutil.rmtree(folder)
    folder = places.work(release_id, "staging")
    columns = [column(name) for name in contract.names]
    records, total = content(frame.select(columns))
    files = max(1, math.ceil(records / RECORDS_PER_FILE))
    ordered = (
        frame.select(*columns, f.xxhash64(*content_of(contract.names)).alias(_ORDER))
        .repartition(files, f.col(_ORDER))
        .sortWithinPartitions(_ORDER, *columns)
        .drop(_ORDER)
    )
    raw = folder / "raw"
    ordered.write.mode("overwrite").parquet(str(raw))
    (folder / "microdata").mkdir()
    parts = sorted(raw.glob("*.parquet"))
    jobs = [
        (str(part), str(folder / "microdata" / f"part-{position:05d}.parquet"))
        for position, part in enumerate(parts)
    ]
    _encode_all(frame.sparkSession, jobs, contract)
    shutil.rmtree(raw)
    _write_tables(tables, contract, folder / "tables")
    return Staged(release_id, folder, contract, (records, total))


def content(frame: DataFrame) -> tuple[int, int]:
    """Number of rows and sum of their hashes: equal for equal multisets of rows, in any order."""
    row = frame.agg(
        f.count(f.lit(1)).alias("records"),
        f.sum(f.xxhash64(*content_of(frame.columns)).cast("decimal(38,0)")).alias("total"),
    ).first()
    assert row is not None
    return int(row["records"]), int(row["total"] or 0)


def release(
    staged: Staged,
    manifest: Mapping[str, Any],
    places: Places,
    entry: Entry,
    *,
    format: str = "parquet",
    accepted: bool = False,
) -> Path:
    """Move a verified release to the public area and make it current.

    What stands there is looked at once more, with the public area locked: a run that keeps its evidence
    elsewhere may have published meanwhile.

    Parameters
    ----------
    staged : Staged
        Verified and accepted by the gate.
    manifest : mapping
        Written as ``manifest.json``, with the checksums of all files.
    places : Places
    entry : Entry
        Line for the ledger.
    format : {"parquet", "delta"}
        With delta, a table at ``<path>/delta`` gets a commit that carries the release id first.
    accepted : bool
        Whether a steward accepted that another release of this name stands.

    Raises
    ------
    GateRefused
        Where another release stands that was not accepted.
    ProtectionFailed
        Where a copied file is not the file that was staged and verified.
    """
    with places.public_lock():
        Ledger(places).refuse_successive(entry.name, staged.release_id, accepted)
        return _move(staged, manifest, places, entry, format)


def _move(staged: Staged, manifest: Mapping[str, Any], places: Places, entry: Entry, format: str) -> Path:
    public = places.release(staged.release_id)
    incoming = places.public / f".{staged.release_id}.incoming"
    for left in places.public.glob(".*.incoming"):  # of runs that died while they copied
        shutil.rmtree(left)
    if public.exists():  # a run died between this rename and its ledger line
        shutil.rmtree(public)
    try:
        _copy(staged, incoming, manifest)
    except BaseException:
        shutil.rmtree(incoming, ignore_errors=True)
        raise
    incoming.rename(public)
    sync_folder(places.public)
    Ledger(places).append(entry)
    _make_current(places, staged.release_id, format)
    return public


def _copy(staged: Staged, incoming: Path, manifest: Mapping[str, Any]) -> None:
    """Copy what was staged, every file compared with its checksum, and add the manifest."""
    files = {}
    for name, expected in staged.checksums.items():
        source, target = staged.folder / name, incoming / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_file():
            shutil.copyfile(source, target)
        if not target.is_file() or checksum(target) != expected:
            raise ProtectionFailed(
                "A file of the release changed after it was staged, or while it was copied to the public "
                "area. Nothing was published; look for a faulty disk or another writer, and call this again."
            )
        files[name] = {"sha256": expected, "bytes": target.stat().st_size}
    write_atomically(incoming / "manifest.json", json.dumps({**manifest, "files": files}, indent=2))
    for folder in [incoming, *(path for path in incoming.rglob("*") if path.is_dir())]:
        sync_folder(folder)


def standing(places: Places, release_id: str, format: str = "parquet") -> bool:
    """Whether a release is published already; finishes the last step of a run that died before it."""
    standing = Ledger(places).standing()
    names = {entry.release_id: entry.name for entry in standing}
    if release_id not in names or not (places.release(release_id) / "manifest.json").is_file():
        return False
    latest = [each for each, name in names.items() if name == names[release_id]][-1]
    if latest == release_id and current(places) != release_id:
        _make_current(places, release_id, format)
    return True


def current(places: Places) -> str | None:
    """Id of the current release, None where there is none."""
    if not places.current.is_file():
        return None
    return str(json.loads(places.current.read_text(encoding="utf-8"))["release_id"])


def _make_current(places: Places, release_id: str, format: str) -> None:
    if format == "delta":
        from pipelines.delta import commit

        commit(places, release_id)
    write_atomically(places.current, json.dumps({"release_id": release_id}))


def _encode_all(spark: SparkSession, jobs: list[tuple[str, str]], contract: Contract) -> None:
    schema = contract.schema.serialize().to_pybytes()
    categories = {name: list(values) for name, values in contract.categories.items()}

    def encode(job: tuple[str, str]) -> bool:
        try:
            _encode(Path(job[0]), Path(job[1]), pa.ipc.read_schema(pa.py_buffer(schema)), categories)
        except Exception:  # its text may hold a value; the driver only learns that it failed
            return False
        return True

    done = spark.sparkContext.parallelize(jobs, len(jobs)).map(encode).collect()
    if not all(done):
        raise ProtectionFailed(
            "A file of the protected records could not be written with the types of the input. Nothing was "
            "published. Look at free disk space in the evidence area first."
        )


def _encode(source: Path, target: Path, schema: pa.Schema, categories: Mapping[str, Sequence[Any]]) -> None:
    """Rewrite one file of Spark's with the types of the contract and no foreign metadata."""
    table = pq.read_table(source, partitioning=None).select(schema.names)
    arrays = [_typed(table[entry.name], entry.type, categories.get(entry.name)) for entry in schema]
    plain = pa.schema([pa.field(entry.name, entry.type, entry.nullable) for entry in schema])
    pq.write_table(pa.table(arrays, schema=plain), target, row_group_size=ROW_GROUP)


def _typed(array: pa.ChunkedArray, wanted: pa.DataType, order: Sequence[Any] | None) -> pa.ChunkedArray:
    if not pa.types.is_dictionary(wanted):
        return array.cast(wanted)
    values = array.cast(wanted.value_type).combine_chunks()
    occurring = values.unique().drop_null()
    if order is None:
        kept = occurring.sort()
    else:
        present = set(occurring.to_pylist())
        kept = pa.array([value for value in order if value in present], wanted.value_type)
    codes = pc.index_in(values, value_set=kept).cast(wanted.index_type)
    return pa.chunked_array([pa.DictionaryArray.from_arrays(codes, kept, ordered=wanted.ordered)])


def _write_tables(tables: Mapping[tuple[str, ...], pa.Table], contract: Contract, folder: Path) -> None:
    """The cells, in the types of the records; dictionaries as the values they stand for."""
    folder.mkdir()
    for table, name in zip(tables, table_files(list(tables)), strict=True):
        cells = tables[table]
        types = [contract.schema.field(variable).type for variable in table]
        plain = [each.value_type if pa.types.is_dictionary(each) else each for each in types]
        arrays = [cells[variable].cast(kind) for variable, kind in zip(table, plain, strict=True)]
        named = pa.table([*arrays, cells[FREQUENCY]], names=[*table, FREQUENCY])
        pq.write_table(named, folder / name)


def table_files(tables: Sequence[tuple[str, ...]]) -> list[str]:
    """File names of tables: numbered, then the variables, as far as a file name can carry them."""
    names = []
    for position, table in enumerate(tables, start=1):
        readable = "_by_".join("".join(c if c.isalnum() else "_" for c in name) for name in table)
        names.append(f"{position:03d}_{readable[:120]}.parquet")
    return names
