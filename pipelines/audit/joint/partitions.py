"""Partitions of units whose sums a release publishes: classes of its records, or finest cells of a table.

An entity is a unit for which a variable has one value: a version of a unit in a register, or a unit in a
period.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from microguard.pipelines.audit.differencing.cells import rounding_of_means
from microguard.pipelines.audit.differencing.histories import mix_bits
from microguard.pipelines.audit.differencing.mean_weights import capped_weights
from microguard.pipelines.audit.differencing.members import Members, first_halves
from microguard.pipelines.audit.joint.cells import CONTRIBUTORS, TableStatements
from microguard.pipelines.audit.joint.releases import Release

MEMBERS, UNITS, LISTS = "members", "units.parquet", "lists.json"
HOLDING, RECORD = "holding", "record"
#: Number of standard errors of a sum of rounded numbers within which the true sum is assumed.
SIGMAS = 4.0
_SEPARATOR = "\x1f"


@dataclass(frozen=True)
class Partition:
    """Sets of entities of one release, smallest first, with an interval for the sum over each set.

    Attributes
    ----------
    release : int
        Position of the release.
    entities : (n,) uint64 array
        Members of the sets, one set after the other.
    weights : (n,) array, or None if all are 1
    sizes : (p,) int64 array
        Number of members of each set.
    hashes : (p,) uint64 array
        Sum of the hashes of the members of each set, with their weights.
    lower, upper : (p,) arrays
        Interval of the (weighted) sum; infinite for cells, which have their own intervals.
    cells : (p,) int64 array
        Row of each set among the cells of its table; -1 for classes.
    k : int
    holders : (n,) uint64 array, or None
        Holding of each entity, or the entity itself without one; entities of a holding are one contributor.
    records : (n,) uint64 array, or None
        Key of the record of each entity, for units that have several records.
    repeated : (u,) uint64 array, or None
        Entities with several records; None if the records are unknown.
    """

    release: int
    entities: np.ndarray
    weights: np.ndarray | None
    sizes: np.ndarray
    hashes: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    cells: np.ndarray
    k: int
    holders: np.ndarray | None = None
    records: np.ndarray | None = None
    repeated: np.ndarray | None = None

    @classmethod
    def collect(
        cls,
        release: int,
        units: tuple[np.ndarray, np.ndarray],
        part_of: np.ndarray,
        weights: np.ndarray | None,
        intervals: tuple[np.ndarray, np.ndarray],
        cells: np.ndarray,
        k: int,
        holdings: tuple[np.ndarray, np.ndarray] | None = None,
        records: np.ndarray | None = None,
    ) -> Partition:
        """Build a partition by sorting records by their sets.

        Parameters
        ----------
        units : (n,) uint64 array, (n,) uint64 array
            Key of the unit of each record, and hash of the period or version that the record's value belongs
            to.
        part_of : (n,) int64 array
            Set of each record.
        intervals : (p,) array, (p,) array
        holdings : (n,) bool array, (n,) uint64 array, optional
            Whether the unit of each record has a holding, and the key of it.
        records : (n,) uint64 array, optional
            Key of each record.
        """
        sizes = np.bincount(part_of, minlength=len(cells))
        order = np.argsort(sizes, kind="stable")
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        part = rank[part_of]
        place = np.argsort(part, kind="stable")
        entities = mix_bits(units[0] ^ units[1], 12)[place]
        weights = None if weights is None else weights[place]
        hashes = np.zeros(len(order), np.uint64)
        np.add.at(hashes, part[place], member_hashes(entities, weights))
        lower, upper = (each[order] for each in intervals)
        holders = None
        if holdings is not None:
            holders = np.where(holdings[0][place], mix_bits(holdings[1], 21)[place], entities)
        repeated = None
        if records is not None:
            records = mix_bits(records ^ units[1], 12)[place]
            distinct, times = np.unique(entities, return_counts=True)
            repeated = distinct[times > 1]
        sets = (sizes[order], hashes, lower, upper, cells[order], k)
        return cls(release, entities, weights, *sets, holders, records, repeated)

    def by_record(self, several: np.ndarray) -> Partition:
        """Return the partition with the records of some units as its entities, and the units as holders.

        Parameters
        ----------
        several : (u,) uint64 array
            Units with several records, which are not in one set only.
        """
        if self.records is None or not np.isin(self.entities, several).any():
            return self
        changed = np.isin(self.entities, several)
        entities = np.where(changed, mix_bits(self.records, 22), self.entities)
        hashes = np.zeros(len(self.sizes), np.uint64)
        np.add.at(hashes, np.repeat(np.arange(len(self.sizes)), self.sizes), member_hashes(entities))
        holders = self.entities if self.holders is None else self.holders
        return replace(self, entities=entities, hashes=hashes, holders=holders)

    def by_unit(self, units: np.ndarray) -> Partition:
        """Return the partition with some units once in each set, however many records they have there.

        Parameters
        ----------
        units : (u,) uint64 array
        """
        part = np.repeat(np.arange(len(self.sizes)), self.sizes)
        again = pd.DataFrame({"part": part, "entity": self.entities}).duplicated().to_numpy()
        kept = ~(again & np.isin(self.entities, units))
        if kept.all():
            return self
        hashes = np.zeros(len(self.sizes), np.uint64)
        np.add.at(hashes, part[kept], member_hashes(self.entities[kept]))
        return replace(
            self,
            entities=self.entities[kept],
            sizes=np.bincount(part[kept], minlength=len(self.sizes)),
            hashes=hashes,
            holders=None if self.holders is None else self.holders[kept],
            records=None if self.records is None else self.records[kept],
        )

    def members(self, sets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return for some sets the entities (p,) bool, the set of each entity, and the weights."""
        last = int(np.flatnonzero(sets).max(initial=-1)) + 1
        part = np.repeat(np.arange(last), self.sizes[:last])
        chosen = sets[part]
        weights = np.ones(len(part)) if self.weights is None else self.weights[: len(part)]
        return self.entities[: len(part)][chosen], part[chosen], weights[chosen]


@dataclass(frozen=True)
class RegionTotals:
    """Totals of regions that a release of records preserves, by label of the region."""

    labels: list[str]
    records: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


@dataclass(frozen=True)
class RecordStatements:
    """Statements of a release of records about sums over its classes and regions.

    Attributes
    ----------
    groups : list of (list of str, Partition)
        Variables and classes of each clustering; the intervals have one column for each variable.
    totals : mapping of variable to RegionTotals
    lists : mapping of variable to array
        Values that a unit can have.
    """

    groups: list[tuple[list[str], Partition]]
    totals: dict[str, RegionTotals]
    lists: dict[str, np.ndarray]

    def partitions(self, variable: str) -> list[Partition]:
        """Return the classes with the intervals of one variable."""
        return [
            replace(each, lower=each.lower[:, place], upper=each.upper[:, place])
            for names, each in self.groups
            if variable in names
            for place in [names.index(variable)]
        ]

    def variables(self) -> list[str]:
        """Return the variables with classes or totals."""
        return list(dict.fromkeys([*(name for names, _ in self.groups for name in names), *self.totals]))


def member_hashes(entities: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return a hash of each member of a set, computed from its entity and its weight."""
    weights = np.ones(1) if weights is None else weights
    return mix_bits(entities + weights.view(np.uint64), 13)


def text_hash(texts: Sequence[str]) -> np.ndarray:
    """Return a 64-bit hash of each text."""
    return pd.util.hash_array(np.asarray(texts, dtype=object), categorize=False)


def read_members(release: Release, position: int) -> RecordStatements:
    """Read the classes of a release of records from its map of units to classes.

    Raises
    ------
    one of `LOST`
    """
    folder = release.evidence / MEMBERS
    members = Members.read(folder)
    if members is None:
        raise FileNotFoundError(folder)
    lists = json.loads((folder / LISTS).read_text()) if (folder / LISTS).is_file() else {}
    groups: list[tuple[list[str], Partition]] = []
    totals: dict[str, RegionTotals] = {}
    weighted = bool(members.about.get("weighted_by"))
    region, k = members.about["region"], int(members.about["k"])
    for group in range(len(members.about["groups"])):
        class_of, alike = members.labels(group)
        _, first = np.unique(alike, return_index=True)
        frame = members.classes[group].to_pandas(strings_to_categorical=True)
        weights = np.ones(len(class_of))
        if weighted:
            weights = capped_weights(members.units["weight"].to_numpy(np.float64), class_of, k)
        mass = np.bincount(class_of, weights, len(first))
        names = list(members.rounding[group])
        ends = np.full((2, len(first), len(names)), np.inf)
        ends[0] = -np.inf
        for place, (name, unit) in enumerate(members.rounding[group].items()):
            means = frame[name].to_numpy(np.float64, na_value=np.nan)[first]
            half = np.zeros(len(first))
            half[class_of] = rounding_of_means(means[class_of], unit)
            known = ~np.isnan(means)
            ends[:, known, place] = (mass * (means - half))[known], (mass * (means + half))[known]
            if region and not weighted and bool(known.all()):
                label = region + "=" + frame[region].iloc[first].astype(str) + _SEPARATOR
                totals[name] = _region_totals(label, mass, mass * means, mass * half)
        partition = Partition.collect(
            position, (members.unit, epochs_of(members)), class_of, weights if weighted else None,
            (ends[0], ends[1]), np.full(len(first), -1), k,
        )  # fmt: skip
        groups.append((names, partition))
    return RecordStatements(
        groups, totals, {name: np.asarray(values, float) for name, values in lists.items()}
    )


def epochs_of(members: Members) -> np.ndarray:
    """Return the hash of each record's version, (n,) uint64."""
    return mix_bits(members.units.get("version", pd.Series(0, members.units.index)).to_numpy(np.uint64), 11)


def read_region_totals(release: Release) -> RecordStatements:
    """Read the totals of regions from published records whose units are not known.

    Raises
    ------
    one of `LOST`
    """
    from microguard.pipelines.audit.differencing.published import is_records, read_records

    totals: dict[str, RegionTotals] = {}
    if release.public is None or not is_records(release.public):
        return RecordStatements([], totals, {})
    published = read_records(release.public)
    if published.weighted_by is not None:
        return RecordStatements([], totals, {})
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
    return RecordStatements([], totals, {})


def _region_totals(label: pd.Series, records: np.ndarray, sums: np.ndarray, half: np.ndarray) -> RegionTotals:
    """Add the sums of classes, (c,), by region and in total; their rounding errors are independent."""
    parts = pd.DataFrame(
        {"n": records, "sum": sums, "most": half, "square": half**2 / 3, "label": label.to_numpy()}
    )
    summed = parts.groupby("label", sort=True)[["n", "sum", "most", "square"]].sum()
    if "" not in summed.index:
        summed.loc[""] = summed.sum()
    error = np.minimum(summed["most"], SIGMAS * np.sqrt(summed["square"])).to_numpy()
    total = summed["sum"].to_numpy()
    return RegionTotals(list(summed.index), summed["n"].to_numpy(), total - error, total + error)


def read_contributors(
    release: Release, position: int, table: TableStatements, linked: Members | None
) -> Partition | None:
    """Read which units contribute to the finest cells of a table; None if the evidence does not contain them.

    Parameters
    ----------
    linked : Members or None
        Map of the records of the same period: the table's units have the versions of these records.

    Raises
    ------
    one of `LOST`
    """
    folder = release.evidence / CONTRIBUTORS
    layout = release.table
    assert layout is not None
    codes = table.codes
    if layout.counts or not folder.is_dir() or codes is None:
        return None
    names = list(codes.columns)
    frame = pq.read_table(folder / UNITS, partitioning=None)
    units = first_halves(frame["unit"])
    coded = {name: frame[f"code_{name}"].combine_chunks().dictionary_encode() for name in names}
    named = np.asarray(codes != layout.total)
    patterns, of = np.unique(named, axis=0, return_inverse=True)
    records, parts = [], []
    cells: list[np.ndarray] = []
    for position_of, pattern in enumerate(patterns):
        if (patterns >= pattern).all(axis=1).sum() > 1:
            continue  # these cells are sums of finer cells, so they are skipped
        rows = np.flatnonzero(of.reshape(-1) == position_of)
        part = np.zeros(len(units), np.int64)
        cell = np.zeros(len(rows), np.int64)
        for name, used in zip(names, pattern, strict=True):
            if not used:
                continue
            categories = pd.Index(coded[name].dictionary.to_pylist())
            width = len(categories) + 1
            part = part * width + coded[name].indices.to_numpy(zero_copy_only=False)
            cell = cell * width + categories.get_indexer(codes[name].iloc[rows])
        place = pd.Index(cell).get_indexer(pd.Index(part))
        inside = np.flatnonzero(place >= 0)
        records.append(inside)
        parts.append(place[inside] + sum(map(len, cells)))
        cells.append(rows)
    chosen = np.concatenate(records)
    epochs = np.full(len(units), text_hash([release.period])[0])
    if linked is not None:
        known, first = np.unique(linked.unit, return_index=True)
        place = pd.Index(known).get_indexer(pd.Index(units))
        epochs = np.where(place >= 0, epochs_of(linked)[first][np.maximum(place, 0)], epochs)
    ends = np.full(sum(map(len, cells)), np.inf)
    holdings = None
    if HOLDING in frame.column_names and frame[HOLDING].null_count < len(frame):
        has = ~np.asarray(frame[HOLDING].is_null())
        keys = np.zeros(len(units), np.uint64)
        keys[has] = first_halves(frame[HOLDING].drop_null())
        holdings = has[chosen], keys[chosen]
    of_records = first_halves(frame[RECORD])[chosen] if RECORD in frame.column_names else None
    return Partition.collect(
        position, (units[chosen], epochs[chosen]), np.concatenate(parts), None, (-ends, ends),
        np.concatenate(cells), layout.least, holdings, of_records,
    )  # fmt: skip
