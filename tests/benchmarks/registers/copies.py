"""Copies of the public folders of a series, with rows matched between copies, as an attacker can do.

The code uses nothing of microguard. Files are read as any reader would, and rows are matched by published
values.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

#: Maximum number of decimal places of rounded numbers; numbers with more count as exact.
PLACES = 6


@dataclass(frozen=True)
class Copy:
    """One release, copied from the public area.

    Attributes
    ----------
    name : str
    k : int
        The k that the manifest guarantees.
    frame : DataFrame
    region, protected, numeric, plain, sensitive : tuple of str
        Columns: `numeric` are protected columns with means, `plain` are all unmodified columns.
    """

    name: str
    k: int
    frame: pd.DataFrame
    region: tuple[str, ...]
    protected: tuple[str, ...]
    numeric: tuple[str, ...]
    plain: tuple[str, ...]
    sensitive: tuple[str, ...]

    @classmethod
    def of(cls, folder: Path) -> Copy:
        """Read the release in a public folder."""
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        columns = manifest["columns"]
        parts = sorted((folder / "microdata").glob("*.parquet"))
        frame = pd.concat([pq.read_table(part).to_pandas() for part in parts], ignore_index=True)
        means = manifest["method"]["representative"] in ("auto", "mean")
        protected = [each for each in columns if each["protected"]]
        return cls(
            manifest["release_id"],
            manifest["guarantee"]["k"],
            frame,
            tuple(each["name"] for each in columns if each["role"] == "region"),
            tuple(each["name"] for each in protected),
            tuple(each["name"] for each in protected if each["kind"] == "numeric" and means),
            tuple(each["name"] for each in columns if not each["protected"] and each["role"] != "region"),
            tuple(each["name"] for each in columns if each["role"] == "sensitive"),
        )


@dataclass(frozen=True)
class MatchedRows:
    """Rows of all copies; the rows of one unit form a track.

    Attributes
    ----------
    copies : tuple of Copy
    rows : DataFrame
        One row for each row of each copy: `copy`, `region`, `class` (equal values are one class in all
        copies), `track`, and `place` in the frame of the copy.
    """

    copies: tuple[Copy, ...]
    rows: pd.DataFrame

    @property
    def k(self) -> int:
        """Return the largest k of the copies."""
        return max(copy.k for copy in self.copies)

    def among(self, first: int, last: int) -> MatchedRows:
        """Return the copies first to last - 1."""
        chosen = self.rows[(self.rows["copy"] >= first) & (self.rows["copy"] < last)]
        return MatchedRows(self.copies[first:last], chosen.assign(copy=chosen["copy"] - first))

    def classes(self) -> np.ndarray:
        """Return the class of each renumbered track in each copy, (tracks, copies), -1 if absent."""
        track, _ = pd.factorize(self.rows["track"], sort=True)
        table = np.full((int(track.max(initial=-1)) + 1, len(self.copies)), -1, np.int64)
        table[track, self.rows["copy"]] = self.rows["class"]
        return table

    def regions(self) -> np.ndarray:
        """Return the region of each track, (tracks,), in the order of `classes`."""
        return np.asarray(self.rows.groupby("track", sort=True)["region"].first(), np.int64)

    def traces(self) -> pd.DataFrame:
        """Return region and unmodified columns of each track's first row, in the order of `classes`."""
        first = self.rows.drop_duplicates("track").sort_values("track")
        names = [*self.copies[0].region, *self.copies[0].plain]
        parts = []
        for number, rows in first.groupby("copy", sort=True):
            frame = self.copies[int(number)].frame.iloc[rows["place"]][names]
            parts.append(frame.set_axis(rows["track"].to_numpy()))
        return pd.concat(parts).sort_index().reset_index(drop=True)


def match_rows(copies: Sequence[Copy]) -> MatchedRows:
    """Match rows by unmodified columns and by their class.

    A row with unique plain columns in each copy is matched by them, even if its class changes. A row with a
    unique combination of plain columns and class is matched by both. The other rows of a class cannot be
    distinguished, so they are matched in order.
    """
    first = copies[0]
    names = [*first.region, *first.protected, *first.plain]
    pooled = pd.concat([copy.frame[names] for copy in copies], ignore_index=True)
    sizes = [len(copy.frame) for copy in copies]
    region = _numbered(pooled, first.region)
    of_class = _numbered(pooled, [*first.region, *first.protected])
    plain = _numbered(pooled, [*first.region, *first.plain]) if first.plain else np.zeros(len(pooled), int)
    rows = pd.DataFrame(
        {
            "copy": np.repeat(np.arange(len(copies)), sizes),
            "region": region,
            "class": of_class,
            "plain": plain,
        }
    )
    rows["place"] = rows.groupby("copy").cumcount()
    together = rows.groupby(["copy", "plain"])["place"].transform("size")
    alone = together.groupby(rows["plain"]).transform("max") == 1
    rank = rows.groupby(["copy", "class", "plain"]).cumcount()
    key = pd.DataFrame(
        {"plain": plain, "class": np.where(alone, -1, of_class), "rank": np.where(alone, 0, rank)}
    )
    rows["track"] = key.groupby(list(key.columns), sort=False).ngroup()
    return MatchedRows(tuple(copies), rows.drop(columns="plain"))


def rounding(copies: Sequence[Copy], name: str) -> float:
    """Return the rounding unit of the published means of a variable; 0 if there is none."""
    values = np.unique(np.concatenate([copy.frame[name].to_numpy(np.float64) for copy in copies]))
    values = values[np.isfinite(values)]
    for places in range(PLACES + 1):
        scaled = values * 10.0**places
        if np.allclose(scaled, np.rint(scaled), rtol=1e-9, atol=1e-9):
            return 10.0**-places
    return 0.0


def _numbered(frame: pd.DataFrame, names: Sequence[str]) -> np.ndarray:
    return np.asarray(frame.groupby(list(names), sort=False, dropna=False).ngroup(), np.int64)
