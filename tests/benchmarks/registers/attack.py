"""Attack a series with copies of all its public folders and no other knowledge.

`python -m tests.benchmarks.registers.attack FOLDER FOLDER ...` attacks the releases in these folders, oldest
first. It matches their rows, subtracts totals of regions and classes, intersects classes and their sensitive
values, and solves the linear system of all rounded means. It shares no code with microguard and its audit.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from tests.benchmarks.registers.copies import Copy, MatchedRows, match_rows
from tests.benchmarks.registers.equations import same_history, solve

#: Number of consecutive copies solved together: more copies contain more corrections, fewer copies leave more
#: unknowns than means.
WINDOW = 5
#: If a smaller share of the rows of a region remains in its class, the region was protected from scratch.
STAYS = 0.5


@dataclass(frozen=True)
class Disclosures:
    """Disclosures that the attacker found.

    Attributes
    ----------
    copies, tracks : int
    smallest : int
        Minimum number of rows with the same history.
    below_k : int
        Number of rows whose history fewer than k rows have.
    close_totals : int
        Number of pairs of totals of two copies (regions or classes) whose rows differ by fewer than k.
    one_value : int
        Number of rows whose classes have several sensitive values each, but only one in common.
    values : DataFrame
        Claimed values: unmodified columns and region of the row, `variable`, `value`, and `copy`, the first
        copy of the solved window. Each row and variable occurs once.
    sums : int
        Number of claimed sums over 2 to k - 1 rows.
    removed : DataFrame
        Claimed totals of fewer than k entrants or exits, from totals of regions without matched rows: `copy`,
        `region`, `rows` (positive for exits), `variable`, `value`.
    """

    copies: int
    tracks: int
    smallest: int
    below_k: int
    close_totals: int
    one_value: int
    values: pd.DataFrame
    sums: int
    removed: pd.DataFrame

    @property
    def nothing(self) -> bool:
        """Return whether the attack found nothing."""
        counts = (self.below_k, self.close_totals, self.one_value, self.sums)
        return not (any(counts) or len(self.values) or len(self.removed))


def attack(copies: Sequence[Copy]) -> Disclosures:
    """Attack the copies of all releases, oldest first."""
    followed = match_rows(copies)
    _, sizes = same_history(followed)
    values, sums = _solved(followed)
    return Disclosures(
        len(copies),
        int(sizes.sum()),
        int(sizes.min(initial=len(followed.rows))),
        int(sizes[sizes < followed.k].sum()),
        close_totals(followed),
        one_value(followed),
        values,
        sums,
        removed(followed),
    )


def _solved(followed: MatchedRows) -> tuple[pd.DataFrame, int]:
    """Return the claims of all windows of copies."""
    claimed, sums, number = [], 0, len(followed.copies)
    for first in range(max(1, number - WINDOW + 1)):
        window = followed.among(first, min(first + WINDOW, number))
        claims = solve(window)
        sums += claims.sums
        traces = window.traces().iloc[claims.values["track"].to_numpy(np.int64)].reset_index(drop=True)
        claimed.append(traces.assign(**claims.values[["variable", "value"]], copy=first))
    every = pd.concat(claimed, ignore_index=True)
    names = [name for name in every.columns if name not in ("value", "copy")]
    return every.drop_duplicates(names, ignore_index=True), sums


def close_totals(followed: MatchedRows) -> int:
    """Return pairs of totals whose rows differ by fewer than k: regions in two copies, and classes."""
    of, sizes = same_history(followed)
    first = np.unique(of, return_index=True)[1]
    classes, region = followed.classes()[first], followed.regions()[first]
    count = 0
    for one, other in combinations(range(len(followed.copies)), 2):
        left, right = classes[:, one], classes[:, other]
        moved = np.bincount(region, np.where((left < 0) != (right < 0), sizes, 0))
        count += _few(moved, followed.k)
        both = (left >= 0) & (right >= 0)
        pairs, place = np.unique(np.column_stack([left, right])[both], axis=0, return_inverse=True)
        if not len(pairs):
            continue
        width = int(classes.max()) + 1
        size = [np.bincount(each[each >= 0], sizes[each >= 0], width) for each in (left, right)]
        common = np.bincount(place.reshape(-1), sizes[both])
        count += _few(size[0][pairs[:, 0]] + size[1][pairs[:, 1]] - 2 * common, followed.k)
    return count


def _few(apart: np.ndarray, k: int) -> int:
    return int(((apart > 0) & (apart < k)).sum())


def one_value(followed: MatchedRows) -> int:
    """Return rows whose classes have a single sensitive value in common, although each has several."""
    of, sizes = same_history(followed)
    columns = followed.classes()[np.unique(of, return_index=True)[1]]
    disclosed = np.zeros(len(sizes), bool)
    for name in followed.copies[0].sensitive:
        shown = []
        for number, copy in enumerate(followed.copies):
            rows = followed.rows[followed.rows["copy"] == number]
            values = copy.frame[name].iloc[rows["place"]].to_numpy()
            shown.append(pd.Series(values).groupby(rows["class"].to_numpy()).agg(frozenset).to_dict())
        for history, classes in enumerate(columns):
            sets = {shown[copy][each] for copy, each in enumerate(classes) if each >= 0}
            common = frozenset.intersection(*sets)
            disclosed[history] |= len(common) == 1 and min(map(len, sets)) > 1
    return int(sizes[disclosed].sum())


def removed(followed: MatchedRows) -> pd.DataFrame:
    """Return totals of few entrants or exits of a region protected from scratch, from its exact totals.

    Means preserve totals, so the totals of two copies differ by the total of entrants and exits, except for
    rounding.
    """
    first, differences = followed.copies[0], []
    for copy in range(len(followed.copies) - 1):
        tables = [_of_regions(followed, number) for number in (copy, copy + 1)]
        for region in tables[0].index.intersection(tables[1].index):
            before, after = tables[0].loc[region], tables[1].loc[region]
            rows = int(before["rows"] - after["rows"])
            stay = len(before["classes"] & after["classes"]) / len(before["classes"] | after["classes"])
            if 0 < abs(rows) < followed.k and stay < STAYS:
                for name in first.numeric:
                    value = (before[name] - after[name]) * np.sign(rows)
                    differences.append((copy, region, rows, name, value))
    return pd.DataFrame(differences, columns=["copy", "region", "rows", "variable", "value"])


def _of_regions(followed: MatchedRows, number: int) -> pd.DataFrame:
    """Return rows, classes and totals of the regions of one copy, by number of the region."""
    rows = followed.rows[followed.rows["copy"] == number]
    copy = followed.copies[number]
    names = list(copy.numeric)
    frame = copy.frame[names].iloc[rows["place"]].astype(np.float64)
    by_region = frame.groupby(rows["region"].to_numpy())
    classes = rows.groupby("region")["class"].agg(frozenset)
    return by_region.sum().assign(rows=by_region.size(), classes=classes)


def main(folders: Sequence[str]) -> None:
    """Attack the releases in these folders, and print the number of disclosures without values."""
    disclosures = attack([Copy.of(Path(folder)) for folder in folders])
    rows = disclosures.values.drop(columns=["variable", "value", "copy"]).drop_duplicates()
    print(
        f"{disclosures.copies} copies, {disclosures.tracks} rows followed; "
        f"the fewest that share all: {disclosures.smallest}"
    )
    print(f"{disclosures.below_k} rows share their history with fewer than k")
    print(f"{disclosures.close_totals} pairs of totals are told apart by fewer than k rows")
    print(f"{disclosures.one_value} rows are left one sensitive value")
    print(
        f"{len(disclosures.values)} values of {len(rows)} rows and {disclosures.sums} small sums "
        "follow from the means"
    )
    print(
        f"{len(disclosures.removed)} totals of fewer than k rows that came or left follow from regions alone"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
