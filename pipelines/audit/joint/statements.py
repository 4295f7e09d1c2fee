"""Statements of the releases of a population: read from files, or loaded from an earlier audit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from microguard.pipelines.audit.differencing.members import Members
from microguard.pipelines.audit.joint.build import Records, Table
from microguard.pipelines.audit.joint.cells import (
    CELLS,
    CONTRIBUTORS,
    FIRST_PUBLISHED,
    TableStatements,
    read_cells,
)
from microguard.pipelines.audit.joint.differences import CellSets
from microguard.pipelines.audit.joint.kept import Kept, code
from microguard.pipelines.audit.joint.partitions import (
    LISTS,
    MEMBERS,
    Partition,
    RecordStatements,
    RegionTotals,
    read_contributors,
    read_members,
    read_region_totals,
)
from microguard.pipelines.audit.joint.releases import LOST, Release
from microguard.pipelines.audit.periods import same_period


@dataclass(frozen=True)
class Statements:
    """Tables and records of a population by measure, the lists of values, and the releases whose files are
    lost.
    """

    tables: dict[str, list[Table]]
    records: dict[str, list[Records]]
    lists: dict[str, list[np.ndarray]]
    lost: tuple[str, ...]


def name_of(release: Release, kept: Kept) -> str:
    """Return a hash of all that the audit reads about a release: files, layout, period and population."""
    digest = kept.digest(_files(release))
    manifest = (
        None if release.manifest is None else [release.manifest.get(each) for each in ("value", "tables")]
    )
    about = [digest, release.release_id, release.group, release.period, release.series, repr(release.table),
             manifest]  # fmt: skip
    return hashlib.sha256(json.dumps([code(), *about]).encode()).hexdigest()


def _files(release: Release) -> dict[str, Path]:
    """Return those files of a release that the audit reads and that exist."""
    folder, public, manifest = release.evidence, release.public, release.manifest
    chosen = [
        folder / CELLS,
        folder / FIRST_PUBLISHED,
        folder / MEMBERS / "members.json",
        folder / MEMBERS / LISTS,
    ]
    for place in (folder / CONTRIBUTORS, folder / MEMBERS):
        chosen += place.rglob("*.parquet")
    files = {f"evidence/{each.relative_to(folder).as_posix()}": each for each in chosen if each.is_file()}
    if public is None or (folder / MEMBERS).is_dir():
        return files
    listed = [public / "manifest.json", *public.rglob("*.parquet")]
    if release.table is not None and manifest is not None:
        listed = [public / table["file"] for table in manifest["tables"]]
    files |= {f"public/{each.relative_to(public).as_posix()}": each for each in listed if each.is_file()}
    return files


def read(releases: Sequence[Release], names: Sequence[str], kept: Kept) -> Statements:
    """Read all releases of a population; records are read first, because they determine the versions of units
    in tables.

    Parameters
    ----------
    releases : sequence of Release
    names : sequence of str
        The `name_of` each release.
    kept : Kept
    """
    found = Statements({}, {}, {}, ())
    lost: dict[int, str] = {}
    linked: dict[str, dict[str, int]] = {}
    for position, release in enumerate(releases):
        if release.table is not None:
            continue
        try:
            statements = _records(release, position, names[position], kept)
        except LOST:
            lost[position] = release.release_id
            continue
        for name in statements.variables():
            partitions = statements.partitions(name)
            one = Records(position, release, partitions, statements.totals.get(name))
            found.records.setdefault(name, []).append(one)
            if partitions:
                linked.setdefault(name, {})[release.period] = position
        for name, values in statements.lists.items():
            found.lists.setdefault(name, []).append(values)
    for position, release in enumerate(releases):
        if release.table is None:
            continue
        other = _position_of_period(linked.get(release.table.measure, {}), release.period)
        versions = None if other is None else releases[other].evidence / MEMBERS
        name = f"{names[position]}{'' if other is None else names[other]}"
        try:
            table = _table(release, position, hashlib.sha256(name.encode()).hexdigest(), versions, kept)
        except LOST:
            lost[position] = release.release_id
            continue
        found.tables.setdefault(release.table.measure, []).append(table)
    for measure, tables in found.tables.items():
        found.tables[measure] = _by_record(tables)
    return Statements(found.tables, found.records, found.lists, tuple(lost[each] for each in sorted(lost)))


def _by_record(tables: list[Table]) -> list[Table]:
    """Return tables in which the records of a unit are entities if one of the tables has several of them.

    A unit of which an earlier version did not store the records remains one entity in all tables.
    """
    maps = [table.partition for table in tables if table.partition is not None]
    stated = [each.repeated for each in maps]
    none = np.zeros(0, np.uint64)
    units = np.unique(np.concatenate([none, *(each for each in stated if each is not None)]))
    without = np.concatenate([none, *(each.entities for each in maps if each.records is None)])
    whole = np.isin(units, without)
    changed = []
    for table in tables:
        partition = table.partition
        if partition is not None and len(units):
            partition = partition.by_record(units[~whole]).by_unit(units[whole])
        if partition is not None and partition is not table.partition:
            sets = CellSets.collect(table.cells, partition)
            table = replace(table, partition=partition, sets=sets)
        changed.append(table)
    return changed


def _position_of_period(positions: Mapping[str, int], period: str) -> int | None:
    """Return the position of the records of a period, otherwise of the last possible records; None without
    records.
    """
    alike = [position for other, position in positions.items() if same_period(other, period)]
    return positions.get(period, max(alike, default=None))


def _table(release: Release, position: int, name: str, versions: Path | None, kept: Kept) -> Table:
    stored = kept.load(name)
    if stored is None:
        cells = read_cells(release)
        linked = None if versions is None else Members.read(versions)
        partition = read_contributors(release, position, cells, linked)
        sets = None if partition is None else CellSets.collect(cells, partition)
        kept.save(name, {**_arrays("cells", cells), **_arrays("units", partition), **_arrays("sets", sets)})
        return Table(position, release, cells, partition, sets)
    least = 0 if release.table is None else release.table.least
    return Table(
        position,
        release,
        _restored(TableStatements, "cells", stored, codes=None),
        _restored(Partition, "units", stored, release=position, k=least, weights=None),
        _restored(CellSets, "sets", stored),
    )


def _records(release: Release, position: int, name: str, kept: Kept) -> RecordStatements:
    if not release.series and not (release.evidence / MEMBERS).is_dir():
        return read_region_totals(release)
    stored = kept.load(name)
    if stored is not None:
        return _restored_records(stored, position)
    fresh = read_members(release, position)
    arrays = {"totals": np.array(list(fresh.totals), str), "lists": np.array(list(fresh.lists), str)}
    for i, (names, partition) in enumerate(fresh.groups):
        arrays |= _arrays(f"group{i}", partition)
        arrays |= {f"group{i}.names": np.array(names, str), f"group{i}.k": np.array(partition.k)}
    for i, totals in enumerate(fresh.totals.values()):
        arrays |= _arrays(f"totals{i}", totals)
    arrays |= {f"list{i}": values for i, values in enumerate(fresh.lists.values())}
    kept.save(name, arrays)
    return fresh


def _restored_records(stored: Mapping[str, np.ndarray], position: int) -> RecordStatements:
    count = sum(name.startswith("group") and name.endswith(".k") for name in stored)
    groups = []
    for i in range(count):
        about = {"release": position, "k": int(stored[f"group{i}.k"]), "weights": None}
        groups.append(
            (stored[f"group{i}.names"].tolist(), _restored(Partition, f"group{i}", stored, **about))
        )
    return RecordStatements(
        groups,
        {
            name: _restored(RegionTotals, f"totals{i}", stored)
            for i, name in enumerate(stored["totals"].tolist())
        },
        {name: stored[f"list{i}"] for i, name in enumerate(stored["lists"].tolist())},
    )


def _arrays(prefix: str, statements: Any) -> dict[str, np.ndarray]:
    """Return the arrays of a dataclass by name; an empty mapping for None."""
    if statements is None:
        return {}
    values = {each.name: getattr(statements, each.name) for each in fields(statements)}
    values = {
        name: np.array(value, str) if isinstance(value, list) else value for name, value in values.items()
    }
    return {f"{prefix}.{name}": value for name, value in values.items() if isinstance(value, np.ndarray)}


def _restored(kind: Any, prefix: str, stored: Mapping[str, np.ndarray], **others: Any) -> Any:
    """Build a dataclass from stored arrays and the values of its other attributes; None without arrays."""
    arrays = {name: stored[f"{prefix}.{name}"] for name in (each.name for each in fields(kind))
              if f"{prefix}.{name}" in stored}  # fmt: skip
    return kind(**{**others, **arrays}) if arrays else None
