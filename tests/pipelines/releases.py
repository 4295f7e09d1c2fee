"""A small verified release for the tests of publication, audit and withdrawal."""

import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.publication.ledger import Entry
from microguard.pipelines.publication.stage import StagedFiles

ID = "0123456789abcdef0123456789abcdef"
RECORDS = pa.table(
    {"sex": ["f", "f", "f", "m", "m", "m"], "hours": pa.array([1, 2, 3, 4, 5, None], pa.int8())}
)
CELLS = pa.table({"sex": ["f", "m"], "frequency": pa.array([3, 3], pa.int64())})


def manifest(release_id=ID, **changes):
    base = {
        "release_id": release_id,
        "guarantee": {
            "k": 3,
            "groups": [
                {"name": "all", "variables": ["sex"], "with_region": [], "smallest_class": 3, "classes": 2}
            ],
        },
        "records": 6,
        "columns": [{"name": "sex", "type": "string"}, {"name": "hours", "type": "int8"}],
        "tables": [{"file": "tables/001_sex.parquet", "variables": ["sex"]}],
    }
    return base | changes


def staged(areas, release_id=ID, records=RECORDS):
    folder = areas.work(release_id, "staging")
    (folder / "microdata").mkdir(exist_ok=True)
    (folder / "tables").mkdir(exist_ok=True)
    pq.write_table(records, folder / "microdata" / "part-00000.parquet")
    pq.write_table(CELLS, folder / "tables" / "001_sex.parquet")
    return StagedFiles.from_folder(release_id, folder)


def entry(release_id=ID):
    return Entry("published", release_id, "persons", "2026-01-01T00:00:00+00:00", {})


def contents(areas):
    """Return the names in the folder of a public area except its identity file."""
    return {path.name for path in areas.public.folder.iterdir()} - {".area.json"}


class Killed(BaseException):
    """Simulate SIGKILL: no later code runs."""


def kill(*_, **__):
    raise Killed
