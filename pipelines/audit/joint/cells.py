"""Statements of a table about the true value of each of its cells."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from microguard.pipelines.audit.joint.releases import Release, TableLayout

#: Evidence files of a table: all cells, cells published for the first time, and contributors of the cells.
CELLS, FIRST_PUBLISHED, CONTRIBUTORS = "cells.parquet", "published_cells.parquet", "contributors"
#: Width of the interval around the published value of a changed sensitive cell, in protection levels.
BAND = 4.0
_CODE, _SEPARATOR = "code_", "\x1f"


@dataclass(frozen=True)
class TableStatements:
    """Cells of a table and the known bounds on their values, one row for each cell.

    Attributes
    ----------
    codes : pandas.DataFrame or None
        Codes by column; None if an earlier audit read the table.
    labels : (c,) array of text
        Codes that identify the cell in any table: the finest code in each hierarchy that is not a total.
    relations : (r, 2) int64 array
        Pairs of a total and one of its parts.
    relation : (r,) int64 array
        Number of the relation of each pair: a total is the sum of the parts of one relation.
    lower, upper : (c,) arrays
        Interval of the true value, according to this release alone.
    gap : (c,) array
        Known minimum distance of a sensitive value from the published one.
    shown : (c,) array
        Published value, NaN if suppressed.
    truth : (c,) array
        Original value.
    sensitive : (c,) bool array
    contributors, largest, second : (c,) arrays, NaN if unknown
    members : (c,) array of text, keyed digest of the contributors, empty if unknown
    """

    codes: pd.DataFrame | None
    labels: np.ndarray
    relations: np.ndarray
    relation: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    gap: np.ndarray
    shown: np.ndarray
    truth: np.ndarray
    sensitive: np.ndarray
    contributors: np.ndarray
    largest: np.ndarray
    second: np.ndarray
    members: np.ndarray


def read_cells(release: Release) -> TableStatements:
    """Read the cells of a table from its evidence and its published files (if it was withdrawn, from the
    evidence alone).

    Raises
    ------
    one of `LOST`
    """
    layout = release.table
    assert layout is not None
    frame = pq.read_table(release.evidence / CELLS).to_pandas()
    codes = frame[[name for name in frame if name.startswith(_CODE)]].astype(str)
    codes.columns = [name.removeprefix(_CODE) for name in codes]
    shown = _shown(release, frame, codes)
    truth = frame["original"].astype(float).to_numpy()
    contributors = _numbers(frame, "contributors")
    if "sensitive" in frame:
        sensitive = frame["sensitive"].to_numpy(bool)
    elif layout.counts:
        sensitive = (truth > 0) & (truth < layout.least)
    else:
        sensitive = contributors < layout.least
    level = np.fmax(_numbers(frame, "lower_protection"), _numbers(frame, "upper_protection"))
    noise = _numbers(frame, "largest_noise")  # only tables of amounts have these
    lower, upper, gap = _known(layout, shown, truth, sensitive, np.nan_to_num(level), np.nan_to_num(noise))
    relations, relation = _relations(codes, layout)
    members = frame["members"].fillna("").to_numpy(str) if "members" in frame else np.full(len(frame), "")
    return TableStatements(
        codes,
        labels_of(codes, layout),
        relations,
        relation,
        lower,
        upper,
        gap,
        shown,
        truth,
        sensitive,
        contributors,
        _numbers(frame, "largest_1"),
        _numbers(frame, "largest_2"),
        members,
    )


def labels_of(codes: pd.DataFrame, layout: TableLayout) -> np.ndarray:
    """Return the identity of each cell: its codes, without codes that are ancestors of a finer code of the
    cell.
    """
    columns = sorted(codes.columns)
    coarser: dict[str, list[str]] = {name: [] for name in columns}
    for hierarchy in layout.hierarchies:
        for position, name in enumerate(hierarchy[:-1]):
            if name in coarser:
                coarser[name] += [finer for finer in hierarchy[position + 1 :] if finer in coarser]
    label = pd.Series("", index=codes.index)
    for name in columns:
        shown = codes[name] != layout.total
        for finer in coarser[name]:
            shown &= codes[finer] == layout.total
        label = label + np.where(shown, name + "=" + codes[name] + _SEPARATOR, "")
    return label.to_numpy(str)


def _numbers(frame: pd.DataFrame, name: str) -> np.ndarray:
    return frame[name].astype(float).to_numpy() if name in frame else np.full(len(frame), np.nan)


def _shown(release: Release, frame: pd.DataFrame, codes: pd.DataFrame) -> np.ndarray:
    """Return the published value of each cell: NaN if it was suppressed, 0 if the file does not contain the
    cell.
    """
    if release.public is not None and release.manifest is not None:
        return _in_files(release, codes)
    if "published" in frame:
        return frame["published"].astype(float).to_numpy()
    assert release.table is not None
    first = pq.read_table(release.evidence / FIRST_PUBLISHED).to_pandas()
    texts = [
        "".join(f"{name}={code}{_SEPARATOR}" for name, code in sorted(json.loads(each)))
        for each in first["codes"]
    ]
    values = pd.Series(first["value"].astype(float).to_numpy(), index=texts)
    return values[~values.index.duplicated()].reindex(labels_of(codes, release.table)).to_numpy()


def _in_files(release: Release, codes: pd.DataFrame) -> np.ndarray:
    manifest, folder = release.manifest, release.public
    assert manifest is not None
    assert folder is not None
    assert release.table is not None
    total, value = release.table.total, str(manifest["value"]["name"])
    place = pd.Series(np.arange(len(codes)), index=_joined(codes))
    shown = np.zeros(len(codes))
    for table in manifest["tables"]:
        listed = pq.read_table(folder / table["file"]).to_pandas()
        of_file = pd.DataFrame(
            {name: listed[name].astype(str) if name in listed else total for name in codes}, listed.index
        )
        rows = place.reindex(_joined(of_file)).to_numpy()
        known = ~np.isnan(rows)
        shown[rows[known].astype(int)] = listed[value].astype(float).to_numpy()[known]
    return shown


def _joined(codes: pd.DataFrame) -> pd.Index:
    """Return the codes of each cell as one text."""
    text = pd.Series("", index=codes.index)
    for name in codes:
        text = text + codes[name] + _SEPARATOR
    return pd.Index(text)


def _known(
    layout: TableLayout,
    shown: np.ndarray,
    truth: np.ndarray,
    sensitive: np.ndarray,
    level: np.ndarray,
    noise: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return bounds on each true value, and for sensitive cells the minimum distance to the published value.

    The audit assumes that an unchanged amount is known to be exact, which is more than most readers know.
    """
    change = np.abs(shown - truth)
    lower, upper, gap = shown.copy(), shown.copy(), np.zeros(len(shown))
    if layout.method == "rounding" and layout.base is not None:
        width = np.maximum(layout.base - 1.0, change)
        lower, upper = shown - width, shown + width
    elif layout.method == "small_count_rounding" and layout.base is not None:
        width = np.where((shown <= layout.base) | (change > 0), np.maximum(layout.base - 1.0, change), 0.0)
        lower, upper = shown - width, shown + width
    elif layout.method == "cell_key" and not layout.counts:
        lower, upper = shown - np.maximum(noise, change), shown + np.maximum(noise, change)
    elif layout.method == "cell_key":
        width = np.where(shown == 0, layout.least - 1.0, 0.0)
        width = np.maximum(np.maximum(width, float(layout.noise or 0)), change)
        lower, upper = shown - width, shown + width
    elif layout.counts:
        small = (shown <= 2 * layout.least) | (change > 0)
        width = np.where(small, np.maximum(2.0 * layout.least, change), 0.0)
        lower, upper = shown - width, shown + width
    else:
        moved = change > 0
        band = np.maximum(BAND * level, 1.5 * change)
        share = layout.capacity
        at_least = np.minimum(np.abs(shown) / (1 + share), np.abs(shown) - change)
        at_most = np.abs(shown) / (1 - share) if share < 1 else np.full(len(shown), np.inf)
        at_most = np.maximum(at_most, np.abs(shown) + change)
        free = moved & ~sensitive
        lower = np.where(moved & sensitive, shown - band, lower)
        upper = np.where(moved & sensitive, shown + band, upper)
        lower = np.where(free, np.where(shown < 0, -at_most, at_least), lower)
        upper = np.where(free, np.where(shown < 0, -at_least, at_most), upper)
        gap = np.where(moved & sensitive, np.minimum(level, change), 0.0)
    hidden = np.isnan(shown)
    lower, upper = np.where(hidden, -np.inf, lower), np.where(hidden, np.inf, upper)
    return lower, upper, np.where(hidden, 0.0, gap)


def _relations(codes: pd.DataFrame, layout: TableLayout) -> tuple[np.ndarray, np.ndarray]:
    """Return all pairs of a total and one of its parts, and the number of the relation of each pair."""
    place = pd.Series(np.arange(len(codes)), index=_joined(codes))
    pairs, numbers, count = [], [], 0
    for name in codes:
        parents = layout.parents.get(str(name), {})
        parts = np.flatnonzero((codes[name] != layout.total).to_numpy())
        above = codes.iloc[parts].copy()
        above[name] = [parents.get(code, layout.total) for code in above[name]]
        whole = place.reindex(_joined(above)).to_numpy()
        known = ~np.isnan(whole)
        if known.any():
            of, number = np.unique(whole[known].astype(np.int64), return_inverse=True)
            pairs.append(np.column_stack([of[number], parts[known]]))
            numbers.append(number + count)
            count += len(of)
    if not pairs:
        return np.zeros((0, 2), np.int64), np.zeros(0, np.int64)
    return np.concatenate(pairs), np.concatenate(numbers)
