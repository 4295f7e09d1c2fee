"""Write public folders of releases and their maps of members, for tests of the joint audit."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq


def write_records(area: Path, name: str, frame: pd.DataFrame, roles: dict, k: int = 3) -> Path:
    """Write the public folder of a release of records; `roles` maps columns to (role, kind)."""
    folder = area / name
    (folder / "microdata").mkdir(parents=True)
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), folder / "microdata" / "part-0.parquet")
    protected = [column for column, (role, _) in roles.items() if role == "quasi_identifier"]
    region = [column for column, (role, _) in roles.items() if role == "region"]
    manifest = {
        "release_id": name,
        "guarantee": {"k": k, "groups": [{"name": "all", "variables": protected, "with_region": region}]},
        "method": {"representative": "auto"},
        "columns": [
            {"name": column, "role": role, "kind": kind, "protected": role == "quasi_identifier"}
            for column, (role, kind) in roles.items()
        ],
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def write_table(area: Path, name: str, frame: pd.DataFrame, value: str, total: str = "T") -> Path:
    """Write the public folder of a release with one protected table."""
    folder = area / name
    (folder / "table").mkdir(parents=True)
    frame.to_parquet(folder / "table" / "1.parquet", index=False)
    levels = [column for column in frame.columns if column != value]
    manifest = {
        "release_id": name,
        "content": "table",
        "value": {"name": value},
        "total": total,
        "tables": [{"file": "table/1.parquet", "columns": [*levels, value]}],
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def write_members(
    folder: Path, name: str, published: pd.DataFrame, classes: list[int], keys: list[bytes]
) -> Path:
    """Write the map of members of a release with `region` and `income`, in the order of the records."""
    folder.mkdir(parents=True)
    about = {"release_id": name, "k": 3, "region": "region", "groups": [["income"]]}
    (folder / "members.json").write_text(json.dumps(about | {"means": ["income"], "sensitive": []}))
    units = pa.table({"unit": pa.array(keys, pa.binary()), "class0": pa.array(classes, pa.int64())})
    pq.write_table(units, folder / "units.parquet")
    shown = published.assign(__class=classes).groupby("__class", as_index=False)
    table = shown.agg(__records=("income", "size"), region=("region", "first"), income=("income", "first"))
    table.to_parquet(folder / "classes0.parquet", index=False)
    return folder
