"""Records of a published release, read from its public folder and its manifest."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

#: Maximum number of decimal places for which published floats count as rounded.
PLACES = 6
#: Maximum relative distance from a multiple of the rounding unit that floating-point errors can cause.
GRID_TOLERANCE = 1e-9


@dataclass(frozen=True)
class PublishedRecords:
    """Microdata of a published release.

    Attributes
    ----------
    release_id : str
    manifest : mapping
    records : pandas.DataFrame
        Every published column.
    rounding : mapping of numeric variable to float
    """

    release_id: str
    manifest: Mapping[str, Any]
    records: pd.DataFrame
    rounding: Mapping[str, float]

    @property
    def k(self) -> int:
        """Return the k that the manifest guarantees."""
        return int(self.manifest["guarantee"]["k"])

    @property
    def groups(self) -> list[tuple[str, ...]]:
        """Return the protected variables of each clustering."""
        return [tuple(group["variables"]) for group in self.manifest["guarantee"]["groups"]]

    @property
    def region(self) -> list[str]:
        """Return a list with the name of the region; an empty list if there is no region."""
        return list(self.manifest["guarantee"]["groups"][0]["with_region"])

    def with_role(self, role: str) -> list[str]:
        """Return the columns that have a role."""
        return [column["name"] for column in self.manifest["columns"] if column["role"] == role]

    @property
    def means(self) -> list[str]:
        """Return the numeric variables that are published as class means."""
        if self.manifest["method"]["representative"] not in ("auto", "mean"):
            return []
        columns = self.manifest["columns"]
        return [each["name"] for each in columns if each["protected"] and each["kind"] == "numeric"]

    @property
    def weighted_by(self) -> str | None:
        """Return the column with the weights of the means, or None; manifests of old versions have no such
        key.
        """
        return self.manifest["method"].get("weighted_by")


def is_records(folder: Path) -> bool:
    """Return whether a release folder contains k-anonymous records (not a table, and not perturbed
    records).
    """
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return isinstance(manifest.get("guarantee"), dict) and "k" in manifest["guarantee"]


def read_records(folder: Path) -> PublishedRecords:
    """Read a release of records from its public folder."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    table = read_microdata(folder, [each["name"] for each in manifest["columns"]], _partition(manifest))
    rounding = {
        column["name"]: rounding_unit(table[column["name"]])
        for column in manifest["columns"]
        if column["protected"] and column["kind"] == "numeric"
    }
    return PublishedRecords(
        manifest["release_id"], manifest, table.to_pandas(strings_to_categorical=True), rounding
    )


def read_microdata(folder: Path, names: Sequence[str], partition: pa.Field | None) -> pa.Table:
    """Read some columns of all records.

    Parameters
    ----------
    folder : Path
        Folder of the release.
    partition : pyarrow.Field or None
        Partition column, whose values are only in the names of the folders (``region=north``).
    """
    if partition is None:
        return pq.read_table(folder / "microdata", partitioning=None).select(names)
    hive = ds.partitioning(pa.schema([partition]), flavor="hive")
    return ds.dataset(folder / "microdata", format="parquet", partitioning=hive).to_table().select(names)


def _partition(manifest: Mapping[str, Any]) -> pa.Field | None:
    name = manifest.get("partitioned_by")
    types = [column["type"] for column in manifest["columns"] if column["name"] == name]
    return pa.field(name, pa.type_for_alias(types[0])) if types else None


def rounding_unit(values: pa.ChunkedArray) -> float:
    """Return the rounding unit of published numbers, derived from their type or values; 0 if they are not
    rounded.
    """
    if pa.types.is_integer(values.type):
        return 1.0
    if pa.types.is_decimal(values.type):
        return float(Decimal(1).scaleb(-values.type.scale))
    numbers = pc.drop_null(values.cast(pa.float64(), safe=False)).to_numpy()
    for places in range(PLACES + 1):
        scaled = numbers * 10.0**places
        if np.all(np.abs(scaled - np.rint(scaled)) <= GRID_TOLERANCE * np.maximum(np.abs(scaled), 1.0)):
            return 10.0**-places
    return 0.0


def codes(frame: pd.DataFrame, names: list[str]) -> np.ndarray:
    """Return a code for each row's combination of column values; missing counts as a value, -0.0
    equals 0.0.
    """
    return codes_together([frame], names)


def codes_together(frames: Sequence[pd.DataFrame], names: list[str]) -> np.ndarray:
    """Return the `codes` of the rows of several frames, concatenated; codes are numbered over all frames."""
    code = np.zeros(sum(map(len, frames)), np.int64)
    for name in names:
        of_column = _coded([frame[name] for frame in frames])
        code, _ = pd.factorize(code * (int(of_column.max(initial=-1)) + 2) + of_column + 1)
    return np.asarray(code, np.int64)


def _coded(parts: Sequence[pd.Series]) -> np.ndarray:
    """Return a code for each value, -1 for missing values; categories are compared by their values."""
    coded = [pd.factorize(part + 0.0 if part.dtype.kind == "f" else part) for part in parts]
    if len(coded) == 1:
        return np.asarray(coded[0][0])
    values = [np.asarray(each) for _, each in coded]
    together = np.split(
        pd.factorize(np.concatenate(values))[0], np.cumsum([len(each) for each in values])[:-1]
    )
    return np.concatenate(
        [np.append(code, -1)[of_part] for code, (of_part, _) in zip(together, coded, strict=True)]
    )
