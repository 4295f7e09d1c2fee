"""Partitions of units that a release sums over: the classes of its records, or the finest cells of a table.

An entity is a unit with one value of a variable: a version of a unit in a register, or a unit in a period.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.audit.differencing.cells import rounding_of_means
from microguard.pipelines.audit.differencing.histories import mix_bits
from microguard.pipelines.audit.differencing.mean_weights import capped_weights
from microguard.pipelines.audit.differencing.members import Members
from microguard.pipelines.audit.joint.cells import CONTRIBUTORS, TableStatements
from microguard.pipelines.audit.joint.releases import Release

MEMBERS, UNITS, LISTS = "members", "units.parquet", "lists.json"
#: Standard errors of a sum of rounded numbers within which its true value lies.
SIGMAS = 4.0
_SEPARATOR = "\x1f"


@dataclass(frozen=True)
class Partition:
    """Disjoint sets of units of one release, with an interval for the sum over each.

    Attributes
    ----------
    release : int
        Position of the release.
    units : (n,) uint64 array
        Key of the unit of each record.
    epochs : (n,) uint64 array
        Which of its values the unit has here: hash of a period, or of a version.
    part_of : (n,) int64 array
        Set of each record.
    weights : (n,) array
    lower, upper : (p,) arrays
        Interval of the (weighted) sum; infinite for cells, which have their own intervals.
    cells : (p,) int64 array
        Row of each set among the cells of its table; -1 for classes.
    k : int
    """

    release: int
    units: np.ndarray
    epochs: np.ndarray
    part_of: np.ndarray
    weights: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    cells: np.ndarray
    k: int


@dataclass(frozen=True)
class RegionTotals:
    """Totals of regions that records keep, by the label of the region."""

    labels: list[str]
    records: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


@dataclass(frozen=True)
class RecordStatements:
    """What a release of records says, by variable."""

    partitions: dict[str, list[Partition]]
    totals: dict[str, RegionTotals]
    lists: dict[str, np.ndarray]


def text_hash(texts: Sequence[str]) -> np.ndarray:
    """Return a 64-bit hash of each text."""
    return pd.util.hash_array(np.asarray(texts, dtype=object), categorize=False)


def read_members(release: Release, position: int) -> RecordStatements:
    """Read the classes of a release of records from its map of members.

    Raises
    ------
    one of `LOST`
    """
    folder = release.evidence / MEMBERS
    members = Members.read(folder)
    if members is None:
        raise FileNotFoundError(folder)
    lists = json.loads((folder / LISTS).read_text()) if (folder / LISTS).is_file() else {}
    partitions: dict[str, list[Partition]] = {}
    totals: dict[str, RegionTotals] = {}
    version = members.units.get("version", pd.Series(0, members.units.index)).to_numpy(np.uint64)
    weighted = bool(members.about.get("weighted_by"))
    k = int(members.about["k"])
    for group in range(len(members.about["groups"])):
        class_of, alike = members.labels(group)
        _, first = np.unique(alike, return_index=True)
        frame = members.classes[group].to_pandas(strings_to_categorical=True)
        weights = np.ones(len(class_of))
        if weighted:
            weights = capped_weights(members.units["weight"].to_numpy(np.float64), class_of, k)
        mass = np.bincount(class_of, weights, len(first))
        for name, unit in members.rounding[group].items():
            means = frame[name].to_numpy(np.float64, na_value=np.nan)[first]
            half = np.zeros(len(first))
            half[class_of] = rounding_of_means(means[class_of], unit)
            known = ~np.isnan(means)
            lower = np.where(known, mass * (means - half), -np.inf)
            upper = np.where(known, mass * (means + half), np.inf)
            partitions.setdefault(name, []).append(
                Partition(position, members.unit, mix_bits(version, 11), class_of, weights, lower, upper,
                          np.full(len(first), -1), k)
            )  # fmt: skip
            region = members.about["region"]
            if region and not weighted and bool(known.all()):
                label = region + "=" + frame[region].iloc[first].astype(str) + _SEPARATOR
                totals[name] = _region_totals(label, mass, mass * means, mass * half)
    known_lists = {name: np.asarray(values, float) for name, values in lists.items()}
    return RecordStatements(partitions, totals, known_lists)


def read_region_totals(release: Release) -> RecordStatements:
    """Read the totals of regions from published records whose units are not known.

    Raises
    ------
    one of `LOST`
    """
    from microguard.pipelines.audit.differencing.published import is_records, read_records

    totals: dict[str, RegionTotals] = {}
    if release.public is None or not is_records(release.public):
        return RecordStatements({}, totals, {})
    published = read_records(release.public)
    if published.weighted_by is not None:
        return RecordStatements({}, totals, {})
    for name in published.means:
        values = published.records[name].to_numpy(np.float64, na_value=np.nan)
        if np.isnan(values).any():
            continue
        half = rounding_of_means(values, published.rounding[name])
        label = pd.Series([""] * len(values))
        if published.region:
            label = (
                published.region[0] + "=" + published.records[published.region[0]].astype(str) + _SEPARATOR
            )
        of_class = pd.DataFrame({"label": label, "value": values, "half": half})
        alike = of_class.groupby(["label", "value", "half"], as_index=False, sort=True).size()
        n = alike["size"].to_numpy(float)
        totals[name] = _region_totals(
            alike["label"], n, n * alike["value"].to_numpy(), n * alike["half"].to_numpy()
        )
    return RecordStatements({}, totals, {})


def _region_totals(label: pd.Series, records: np.ndarray, sums: np.ndarray, half: np.ndarray) -> RegionTotals:
    """Add up the sums of classes, (c,), by region and over all; their rounding errors are independent."""
    parts = pd.DataFrame(
        {"n": records, "sum": sums, "most": half, "square": half**2 / 3, "label": label.to_numpy()}
    )
    summed = parts.groupby("label", sort=True)[["n", "sum", "most", "square"]].sum()
    if "" not in summed.index:
        summed.loc[""] = summed.sum()
    error = np.minimum(summed["most"], SIGMAS * np.sqrt(summed["square"])).to_numpy()
    total = summed["sum"].to_numpy()
    return RegionTotals(list(summed.index), summed["n"].to_numpy(), total - error, total + error)


def read_contributors(release: Release, position: int, table: TableStatements) -> list[Partition]:
    """Read which units contribute to the finest cells of a table; empty if its evidence does not know them.

    Raises
    ------
    one of `LOST`
    """
    folder = release.evidence / CONTRIBUTORS
    layout = release.table
    assert layout is not None
    if layout.counts or not folder.is_dir():
        return []
    names = list(table.codes.columns)
    units = pq.read_table(folder / UNITS, partitioning=None)
    keys = units["unit"].cast(pa.binary(16)).combine_chunks()
    halves = np.frombuffer(keys.buffers()[1], "<u8")[2 * keys.offset :][: 2 * len(keys)][::2]
    coded = {name: units[f"code_{name}"].combine_chunks().dictionary_encode() for name in names}
    named = (table.codes != layout.total).to_numpy()
    patterns, of = np.unique(named, axis=0, return_inverse=True)
    epoch = np.full(len(halves), text_hash([release.period])[0])
    partitions = []
    for position_of, pattern in enumerate(patterns):
        if (patterns >= pattern).all(axis=1).sum() > 1:
            continue  # sums of finer cells
        rows = np.flatnonzero(of.reshape(-1) == position_of)
        part = np.zeros(len(halves), np.int64)
        cell = np.zeros(len(rows), np.int64)
        for name, used in zip(names, pattern, strict=True):
            if not used:
                continue
            categories = pd.Index(coded[name].dictionary.to_pylist())
            width = len(categories) + 1
            part = part * width + coded[name].indices.to_numpy(zero_copy_only=False)
            cell = cell * width + categories.get_indexer(table.codes[name].iloc[rows])
        place = pd.Index(cell).get_indexer(pd.Index(part))
        inside = place >= 0
        ends = np.full(len(rows), np.inf)
        partitions.append(
            Partition(position, halves[inside], epoch[inside], place[inside], np.ones(int(inside.sum())),
                      -ends, ends, rows, layout.least)
        )  # fmt: skip
    return partitions
