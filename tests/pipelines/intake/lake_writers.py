"""Write Delta and Iceberg tables as other engines do: deletion vectors, position deletes, evolved schemas."""

import base64
import json
import time
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestWriterV2,
)
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update.snapshot import _FastAppendFiles
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyroaring import BitMap64

_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def persons(first: int, last: int, region: str) -> pa.Table:
    """Return the persons with ids in [first, last) of one region."""
    ids = range(first, last)
    return pa.table(
        {
            "person_id": pa.array(ids, pa.int32()),
            "region": [region] * len(ids),
            "sex": ["f" if each % 2 else "m" for each in ids],
            "income": pa.array([1000.0 + each for each in ids], pa.float64()),
        }
    )


def delta_with_deletion_vectors(folder: Path) -> set[int]:
    """Write a partitioned Delta table of five versions; return the ids of its last one.

    Version 0 has persons 0 to 99, 1 adds 100 to 199, 2 deletes 0 to 9 by rewriting, 3 deletes every tenth of
    the north, and 4 every tenth of the south by deletion vectors.
    """
    write_deltalake(folder, persons(0, 100, "north"), partition_by=["region"])
    write_deltalake(folder, persons(100, 200, "south"), mode="append")
    DeltaTable(folder).delete("person_id < 10")
    _delete_by_vector(folder, 3, "north")
    _delete_by_vector(folder, 4, "south")
    return {each for each in range(10, 200) if each % 10}


def _delete_by_vector(folder: Path, version: int, region: str) -> None:
    """Commit a deletion vector for the records whose id ends in 0, as Spark does."""
    adds = {}
    for path in sorted((folder / "_delta_log").glob("*.json")):
        for line in path.read_text().splitlines():
            action = json.loads(line)
            if "add" in action:
                adds[action["add"]["path"]] = action["add"]
            elif "remove" in action:
                adds.pop(action["remove"]["path"], None)
    (path, add) = next((each, add) for each, add in adds.items() if f"region={region}" in each)
    ids = pq.ParquetFile(folder / path).read(["person_id"]).column(0).to_pylist()
    deleted = [row for row, each in enumerate(ids) if each % 10 == 0]
    content = (1681511377).to_bytes(4, "little") + BitMap64(deleted).serialize()
    content += b"\0" * (-len(content) % 4)
    text = base64.b85encode(content).decode().translate(str.maketrans(_B85, _Z85))
    vector = {
        "storageType": "i",
        "pathOrInlineDv": text,
        "sizeInBytes": len(content),
        "cardinality": len(deleted),
    }
    now = int(time.time() * 1000)
    features = ["deletionVectors"]
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": features,
        "writerFeatures": features,
    }
    removed = {"path": path, "deletionTimestamp": now, "dataChange": True}
    actions = [
        {"commitInfo": {"timestamp": now, "operation": "DELETE"}},
        {"protocol": protocol},
        {"remove": removed},
        {"add": {**add, "deletionVector": vector, "dataChange": True}},
    ]
    log = folder / "_delta_log" / f"{version:020}.json"
    log.write_text("\n".join(map(json.dumps, actions)))


def iceberg_with_position_deletes(warehouse: Path) -> tuple[Path, set[int], list[int]]:
    """Write an Iceberg table with an evolved partition, a renamed column and position deletes.

    Returns
    -------
    folder : Path
    ids : set of int
        Persons of the current snapshot.
    snapshots : list of int
        Ids of all snapshots, oldest first; the first has persons 0 to 99.
    """
    catalog = InMemoryCatalog("test", warehouse=f"file://{warehouse}")
    catalog.create_namespace("office")
    table = catalog.create_table(
        "office.persons", persons(0, 1, "north").schema, properties={"format-version": "2"}
    )
    table.append(persons(0, 100, "north"))
    with table.update_spec() as spec:
        spec.add_field("region", IdentityTransform(), "region")
    with table.update_schema() as schema:
        schema.rename_column("income", "earnings")
    table.append(persons(100, 200, "south").rename_columns(["person_id", "region", "sex", "earnings"]))
    first = next(task.file for task in table.scan().plan_files() if task.file.spec_id == 0)
    _delete_positions(table, first, list(range(0, 100, 10)))
    folder = Path(table.metadata_location.removeprefix("file://")).parents[1]
    return folder, set(range(200)) - set(range(0, 100, 10)), [each.snapshot_id for each in table.snapshots()]


class _DeleteManifest(ManifestWriterV2):
    def content(self):
        return ManifestContent.DELETES

    @property
    def _meta(self):
        return {**super()._meta, "content": "deletes"}


class _AddDeletes(_FastAppendFiles):
    def new_manifest_writer(self, spec):
        table = self._transaction.table_metadata
        output = self._io.new_output(f"{table.location}/metadata/{uuid.uuid4()}.avro")
        return _DeleteManifest(table.specs()[0], table.schema(), output, self._snapshot_id, self._compression)

    def _summary(self, snapshot_properties=None):
        return Summary(operation=Operation.DELETE)


def _delete_positions(table, data_file, positions) -> None:
    fields = [
        pa.field("file_path", pa.string(), False, {"PARQUET:field_id": "2147483546"}),
        pa.field("pos", pa.int64(), False, {"PARQUET:field_id": "2147483545"}),
    ]
    rows = pa.table(
        [pa.array([data_file.file_path] * len(positions)), pa.array(positions, pa.int64())],
        schema=pa.schema(fields),
    )
    place = f"{table.location()}/data/{uuid.uuid4()}-deletes.parquet"
    path = place.removeprefix("file://")
    pq.write_table(rows, path)
    deletes = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=place,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=len(positions),
        file_size_in_bytes=Path(path).stat().st_size,
    )
    deletes.spec_id = 0
    transaction = table.transaction()
    producer = _AddDeletes(Operation.DELETE, transaction, table.io)
    producer.append_data_file(deletes)
    producer.commit()
    transaction.commit_transaction()
