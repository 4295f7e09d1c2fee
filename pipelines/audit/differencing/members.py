"""Map from unit keys to classes in the evidence, and its comparison with the published files.

The map is a folder with three kinds of files:

``members.json``
    ``release_id``, ``k``, ``region`` (name or null), ``groups`` (list of lists of variables), ``means``
    (numeric variables published as means), ``sensitive`` (names), and ``weighted_by`` (name) if means are
    weighted.
``units.parquet``
    One row for each published record. ``unit`` is a keyed hash of 16 bytes. ``class0``, ``class1``, ...
    (int64) is the class in each group. ``sensitive0``, ... (int64) are keyed hashes of the sensitive values.
    If corrected units were published again, ``version`` numbers the versions of a unit, and ``value0``, ...
    (int64) are hashes of the original values of the means, 0 if unknown. If means are weighted, ``weight`` is
    the published weight.
``classes0.parquet``, ...
    One row for each class of a group: ``__class``, ``__records``, and the published region and protected
    variables.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from microguard.pipelines.audit.differencing.classes import Classes
from microguard.pipelines.audit.differencing.mean_weights import capped_weights
from microguard.pipelines.audit.differencing.published import (
    PublishedRecords,
    codes,
    codes_together,
    rounding_unit,
)


@dataclass(frozen=True)
class Members:
    """Map from unit keys to classes of one release.

    Attributes
    ----------
    about : dict
        Content of ``members.json``.
    unit : (n,) uint64 array
        First half of each key. With ten million units, one of 300,000 sources has two equal halves.
    units : pandas.DataFrame
        The other columns of ``units.parquet``.
    classes : tuple of pyarrow.Table
        The tables ``classes0.parquet``, ...
    rounding : tuple of mappings of variable to float
        Rounding units of the means of each group.
    """

    about: dict[str, Any]
    unit: np.ndarray
    units: pd.DataFrame
    classes: tuple[pa.Table, ...]
    rounding: tuple[dict[str, float], ...]

    @classmethod
    def read(cls, folder: Path) -> Members | None:
        """Read the map from a folder of the evidence; return None if the folder contains none.

        Raises
        ------
        OSError, ValueError, KeyError, TypeError
            If the map is damaged.
        """
        if not (folder / "members.json").is_file():
            return None
        about = json.loads((folder / "members.json").read_text(encoding="utf-8"))
        table = pq.read_table(folder / "units.parquet")
        classes = [pq.read_table(folder / f"classes{i}.parquet") for i in range(len(about["groups"]))]
        rounding = [
            {name: rounding_unit(table[name]) for name in about["means"] if name in variables}
            for table, variables in zip(classes, about["groups"], strict=True)
        ]
        for i, listed in enumerate(classes):
            if not pc.all(pc.is_in(table[f"class{i}"], value_set=listed["__class"])).as_py():
                raise ValueError(
                    f"class{i}: expected classes of classes{i}.parquet, found others. Restore the evidence "
                    "of this release from a backup"
                )
        units = table.drop_columns(["unit"]).to_pandas()
        return cls(about, first_halves(table["unit"]), units, tuple(classes), tuple(rounding))

    def labels(self, position: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the class of each record of a group, (n,), and of each row of its table.

        Rows with equal published values form one class.
        """
        frame = self.classes[position].to_pandas(strings_to_categorical=True)
        region = [self.about["region"]] if self.about["region"] else []
        alike = codes(frame, [*region, *self.about["groups"][position]])
        place = pd.Index(frame["__class"]).get_indexer(self.units[f"class{position}"])
        return alike[place], alike

    def describes(self, published: PublishedRecords) -> bool:
        """Return whether the published files have the same classes: equal values with equal frequencies."""
        for table, variables in zip(self.classes, self.about["groups"], strict=True):
            names = [*([self.about["region"]] if self.about["region"] else []), *variables]
            if not set(names) <= set(published.records.columns):
                return False
            classes = table.select([*names, "__records"]).to_pandas(strings_to_categorical=True)
            code = codes_together([classes, published.records], names)
            records = np.concatenate([classes["__records"], np.full(len(published.records), -1)])
            if np.bincount(code, records).any():
                return False
        return True


def first_halves(keys: pa.ChunkedArray) -> np.ndarray:
    """Return the first half of each unit key of 16 bytes, (n,) uint64."""
    joined = keys.cast(pa.binary(16)).combine_chunks()
    halves = np.frombuffer(joined.buffers()[1], "<u8")[2 * joined.offset :][: 2 * len(joined)]
    return np.asarray(halves[::2])


def classes_from_members(maps: Sequence[Members]) -> list[Classes]:
    """Return the classes of all clusterings; units and regions are numbered over all releases.

    Classes of one release with equal published values are one class, because a reader cannot distinguish
    them.
    """
    numbered, _ = pd.factorize(np.concatenate([each.unit for each in maps]))
    versions = [each.units.get("version", pd.Series(0, each.units.index)).to_numpy() for each in maps]
    records, _ = pd.factorize(
        numbered * (1 + max(int(v.max(initial=0)) for v in versions)) + np.concatenate(versions)
    )
    ends = np.cumsum([len(each.unit) for each in maps])[:-1]
    units = np.split(numbered, ends)
    sensitive, values = _coded_together(maps), _values_together(maps, units)
    classes = []
    for each, unit, record, sensitive_codes, value_codes in zip(
        maps, units, np.split(records, ends), sensitive, values, strict=True
    ):
        for position, variables in enumerate(each.about["groups"]):
            clustering, regions = _classes(each, position, tuple(variables), unit, record, sensitive_codes)
            known = {name: codes for name, codes in value_codes.items() if name in clustering.means}
            classes.append((replace(clustering, values=known), regions))
    return _with_regions(classes)


def _classes(
    each: Members,
    position: int,
    variables: tuple[str, ...],
    unit: np.ndarray,
    record: np.ndarray,
    sensitive: dict[str, np.ndarray],
) -> tuple[Classes, list[Any]]:
    """Return the classes of one clustering, and the name of the region of each class."""
    region = [each.about["region"]] if each.about["region"] else []
    frame = each.classes[position].to_pandas(strings_to_categorical=True)
    of, alike = each.labels(position)
    _, first = np.unique(alike, return_index=True)
    rounding = each.rounding[position]
    classes = Classes(
        each.about["release_id"],
        int(each.about["k"]),
        variables,
        unit,
        of,
        np.zeros(len(first), np.int64),
        {name: frame[name].to_numpy(np.float64, na_value=np.nan)[first] for name in rounding},
        rounding,
        sensitive,
        record,
        capped_weights(each.units["weight"].to_numpy(np.float64), of, int(each.about["k"]))
        if each.about.get("weighted_by")
        else np.ones(len(unit)),
    )
    return classes, frame[region[0]].iloc[first].tolist() if region else [None] * len(first)


def _with_regions(classes_with_names: Sequence[tuple[Classes, list[Any]]]) -> list[Classes]:
    coded = [pd.factorize(pd.Series(regions), use_na_sentinel=False) for _, regions in classes_with_names]
    names = [str(name) for _, regions in coded for name in regions]
    numbers = np.split(
        pd.factorize(pd.Series(names, dtype=object))[0], np.cumsum([len(r) for _, r in coded])[:-1]
    )
    parts = [number[code] for number, (code, _) in zip(numbers, coded, strict=True)]
    return [
        replace(classes, region=part) for (classes, _), part in zip(classes_with_names, parts, strict=True)
    ]


def _coded_together(maps: Sequence[Members]) -> list[dict[str, np.ndarray]]:
    """Return the codes of the sensitive values in every release; codes are numbered over all releases."""
    by_release: list[dict[str, np.ndarray]] = [{} for _ in maps]
    names = dict.fromkeys(name for each in maps for name in each.about["sensitive"])
    for name in names:
        positions = [i for i, each in enumerate(maps) if name in each.about["sensitive"]]
        columns = [maps[i].units[f"sensitive{maps[i].about['sensitive'].index(name)}"] for i in positions]
        coded, _ = pd.factorize(np.concatenate(columns))
        for i, part in zip(
            positions, np.split(coded, np.cumsum([len(c) for c in columns])[:-1]), strict=True
        ):
            by_release[i][name] = np.asarray(part, np.int64)
    return by_release


def _values_together(maps: Sequence[Members], units: Sequence[np.ndarray]) -> list[dict[str, np.ndarray]]:
    """Return codes of unit and original value of each record, for means whose original values are stored."""
    by_release: list[dict[str, np.ndarray]] = [{} for _ in maps]
    places = [{name: f"value{i}" for i, name in enumerate(each.about["means"])} for each in maps]
    known = [
        {name for name, place in of.items() if place in each.units}
        for each, of in zip(maps, places, strict=True)
    ]
    for name in sorted(set[str]().union(*known)):
        positions = [i for i, of in enumerate(places) if name in of]
        hashes = [
            maps[i].units.get(places[i][name], pd.Series(0, maps[i].units.index)).to_numpy(np.int64)
            for i in positions
        ]
        value, of_values = pd.factorize(np.concatenate(hashes))
        unit = np.concatenate([units[i] for i in positions])
        code = pd.factorize(unit * len(of_values) + value)[0]
        ends = np.cumsum([len(each) for each in hashes])[:-1]
        for i, part in zip(positions, np.split(code, ends), strict=True):
            by_release[i][name] = part
    return by_release
