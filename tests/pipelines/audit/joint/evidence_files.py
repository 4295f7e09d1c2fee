"""Write small releases with their evidence, as runs leave them, for the joint audit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.audit.joint.releases import Release, TableLayout

TOTAL = "Total"


def unit_keys(units: Sequence[object]) -> pa.Array:
    """Return the keyed hash of each unit."""
    keys = [hashlib.blake2b(str(unit).encode(), key=b"agency", digest_size=16).digest() for unit in units]
    return pa.array(keys, pa.binary(16))


def all_cells(firms: pd.DataFrame, dimensions: Sequence[str], value: str) -> pd.DataFrame:
    """Return codes, ``original``, ``contributors`` and the two largest contributions of all cells and
    margins.
    """
    rows = []
    for pattern in range(2 ** len(dimensions)):
        named = [name for i, name in enumerate(dimensions) if pattern >> i & 1]
        groups = firms.groupby(named) if named else [((), firms)]
        for codes, group in groups:
            codes = codes if isinstance(codes, tuple) else (codes,)
            largest = [*np.sort(group[value])[::-1][:2], 0.0][:2]
            rows.append(
                {
                    **dict.fromkeys(dimensions, TOTAL),
                    **dict(zip(named, map(str, codes), strict=True)),
                    "original": float(group[value].sum()),
                    "contributors": len(group),
                    "largest_1": float(largest[0]),
                    "largest_2": float(largest[1]),
                }
            )
    return pd.DataFrame(rows)


def write_table(
    folder: Path,
    cells: pd.DataFrame,
    dimensions: Sequence[str],
    *,
    firms: pd.DataFrame | None = None,
    group: str = "firms",
    period: str = "2026",
    measure: str = "turnover",
    method: str = "suppression",
    withdrawn: bool = False,
    **layout: Any,
) -> Release:
    """Write a table: ``published`` (NaN is suppressed) and ``sensitive`` of its cells; `firms` are units."""
    evidence, public = folder / "evidence", folder / "public"
    evidence.mkdir(parents=True)
    columns = {f"code_{name}": cells[name].astype(str) for name in dimensions}
    columns |= {name: cells[name] for name in cells if name not in dimensions}
    pq.write_table(
        pa.table({name: pa.array(each) for name, each in columns.items()}), evidence / "cells.parquet"
    )
    if firms is not None:
        (evidence / "contributors" / "units.parquet").mkdir(parents=True)
        units = {"unit": unit_keys(firms["unit"].tolist())}
        units |= {f"code_{name}": pa.array(firms[name].astype(str)) for name in dimensions}
        if "holding" in firms:
            keys = unit_keys([f"holding {each}" for each in firms["holding"]]).to_pylist()
            known = firms["holding"].notna()
            held = [key if there else None for key, there in zip(keys, known, strict=True)]
            units["holding"] = pa.array(held, pa.binary(16))
        if "record" in firms:
            units["record"] = unit_keys([f"record {each}" for each in firms["record"]])
        pq.write_table(pa.table(units), evidence / "contributors" / "units.parquet" / "part-0.parquet")
    manifest = None
    if not withdrawn:
        (public / "table").mkdir(parents=True)
        shown = {name: pa.array(cells[name].astype(str)) for name in dimensions}
        shown["value"] = pa.array(cells["published"], from_pandas=True)
        pq.write_table(pa.table(shown), public / "table" / "001.parquet")
        manifest = {"value": {"name": "value"}, "tables": [{"file": "table/001.parquet"}]}
    table = TableLayout(measure=measure, method=method, **layout)
    return Release(folder.name, group, period, evidence, None if withdrawn else public, manifest, table)


def write_classes(
    folder: Path,
    units: Sequence[int],
    class_of: Sequence[int],
    means: Mapping[str, Sequence[float]],
    *,
    region: Sequence[str] = (),
    group: str = "firms",
    period: str = "2026",
    lists: Mapping[str, Sequence[float]] | None = None,
) -> Release:
    """Write the map of members of a release of records: the class of each unit, and the means of classes."""
    members = folder / "evidence" / "members"
    members.mkdir(parents=True)
    about = {
        "release_id": folder.name, "k": 3, "region": "region" if len(region) else None,
        "groups": [list(means)], "means": list(means), "sensitive": [],
    }  # fmt: skip
    (members / "members.json").write_text(json.dumps(about))
    if lists:
        (members / "lists.json").write_text(
            json.dumps({name: list(values) for name, values in lists.items()})
        )
    pq.write_table(
        pa.table({"unit": unit_keys(units), "class0": np.asarray(class_of)}), members / "units.parquet"
    )
    size = np.bincount(class_of)
    regions = {"region": list(region)} if len(region) else {}
    classes = {"__class": np.arange(len(size)), "__records": size, **regions}
    classes |= {name: np.asarray(values, float) for name, values in means.items()}
    pq.write_table(pa.table(classes), members / "classes0.parquet")
    return Release(folder.name, group, period, folder / "evidence")


def write_records(folder: Path, records: pd.DataFrame, mean: str, *, period: str = "2026") -> Release:
    """Write public records with a region and a protected mean, whose units are unknown."""
    public = folder / "public"
    (public / "microdata").mkdir(parents=True)
    (folder / "evidence").mkdir()
    columns = [
        {"name": "region", "type": "string", "role": "region", "kind": "nominal", "protected": False},
        {"name": mean, "type": "double", "role": "quasi_identifier", "kind": "numeric", "protected": True},
    ]
    manifest = {
        "release_id": folder.name, "columns": columns, "method": {"representative": "mean"},
        "guarantee": {"k": 3, "groups": [{"variables": [mean], "with_region": ["region"]}]},
    }  # fmt: skip
    (public / "manifest.json").write_text(json.dumps(manifest))
    pq.write_table(pa.Table.from_pandas(records[["region", mean]], preserve_index=False),
                   public / "microdata" / "part-0.parquet")  # fmt: skip
    return Release(folder.name, "firms", period, folder / "evidence", public, manifest)
