"""Pairs of releases with a planted leak, and the same pairs without it, by seed.

Each generator writes to a folder and returns the releases. With ``leak`` false it is the control.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
import pandas as pd
from microguard.pipelines.audit.joint.releases import COUNT, Release

from tests.pipelines.audit.joint.evidence_files import (
    TOTAL,
    all_cells,
    write_classes,
    write_records,
    write_table,
)

Leak = Callable[[Path, int, bool], list[Release]]


def firms_of(seed: int, number: int = 80) -> pd.DataFrame:
    """Return firms with branch, region and turnover."""
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "unit": random.permutation(10_000)[:number],
            "branch": random.choice(list("abc"), number),
            "region": random.choice(["north", "south"], number),
            "turnover": np.round(random.lognormal(6, 0.7, number)) + 1,
        }
    )


def published(cells: pd.DataFrame, **columns: object) -> pd.DataFrame:
    """Return the cells published as they are, none of them sensitive, with changes."""
    return cells.assign(**{"published": cells["original"], "sensitive": False, **columns})


def mean_with_one_unit_more(folder: Path, seed: int, leak: bool) -> list[Release]:
    """Publish a mean twice, the second time with one unit more (control: with three)."""
    random = np.random.default_rng(seed)
    count = int(random.integers(4, 9))
    values = np.round(random.lognormal(5, 0.5, 60) + 100, 2)
    units = np.arange(60) + 100 * seed
    class_of = np.repeat(np.arange(60 // 3), 3)
    class_of[: count + 3] = 0
    first = np.concatenate([np.arange(count), np.arange(count + 3, 60)])
    more = np.arange(count, count + (1 if leak else 3))
    second = np.concatenate([first[:count], more, first[count:]])
    releases = []
    for name, there in (("r1", first), ("r2", second)):
        _, of = np.unique(class_of[there], return_inverse=True)
        means = np.round(np.bincount(of, values[there]) / np.bincount(of), 4)
        releases.append(write_classes(folder / name, units[there].tolist(), of, {"income": means}))
    return releases


def region_totals_of_records(folder: Path, seed: int, leak: bool) -> list[Release]:
    """Publish records that keep totals of regions, and a table that moves one (control: other records)."""
    random = np.random.default_rng(seed)
    firms = firms_of(seed)
    cells = published(all_cells(firms, ["region"], "turnover"))
    moved = int(random.integers(1, 3))
    factor = 1 + random.choice([-1, 1]) * random.uniform(0.2, 0.5)
    level = 0.2 * cells["original"]
    hit = np.arange(len(cells)) == moved
    change = (factor - 1) * cells["original"][moved]
    shown = cells["original"] + np.where(hit, change, np.where(cells["region"] == TOTAL, 0.0, -change))
    cells = cells.assign(published=shown, sensitive=hit, lower_protection=level, upper_protection=level)
    table = write_table(folder / "t", cells, ["region"], method="adjustment", capacity=2.0)
    number = firms.sort_values(["region", "turnover"]).groupby("region").cumcount().sort_index() // 3
    last = number.groupby(firms["region"]).transform("max")
    classes = [firms["region"], number.where(number < last, last - 1)]
    records = firms.assign(turnover=firms.groupby(classes)["turnover"].transform("mean").round(1))
    if not leak:
        records = pd.concat([records, records.groupby("region").head(3)])
    return [table, write_records(folder / "r", records, "turnover")]


def whole_and_part(folder: Path, seed: int, leak: bool, withdrawn: bool = False) -> list[Release]:
    """Publish tables of all firms and of all but one (control: all but four of each cell)."""
    random = np.random.default_rng(seed)
    firms = firms_of(seed)
    out = random.permutation(len(firms))[:1]
    if not leak:
        rank = firms.sample(frac=1, random_state=seed).groupby(["branch", "region"]).cumcount().sort_index()
        out = np.flatnonzero(rank < 4)
    part = firms.drop(firms.index[out])
    names = ["branch", "region"]
    first = write_table(folder / "whole", published(all_cells(firms, names, "turnover")), names, firms=firms)
    second = write_table(folder / "part", published(all_cells(part, names, "turnover")), names, firms=part,
                         withdrawn=withdrawn)  # fmt: skip
    return [first, second]


def withdrawn_part(folder: Path, seed: int, leak: bool) -> list[Release]:
    """Publish tables of all firms and of all but one; withdraw the second, of which copies remain."""
    return whole_and_part(folder, seed, leak, withdrawn=True)


def two_values(folder: Path, seed: int, leak: bool) -> list[Release]:
    """Publish a sensitive cell with two values (control: with one)."""
    random = np.random.default_rng(seed)
    firms = firms_of(seed)
    cells = published(all_cells(firms, ["branch"], "turnover"))
    hit = int(random.integers(1, len(cells)))
    other = 1 + hit % (len(cells) - 1)
    level = 0.2 * cells["original"]
    releases = []
    for name in ("t1", "t2"):
        if leak or name == "t1":
            change = cells["original"][hit] * random.uniform(0.2, 0.8) * random.choice([-1, 1])
        shown = cells["original"] + change * (cells.index == hit) - change * (cells.index == other)
        marked = cells.assign(published=shown, sensitive=cells.index == hit, lower_protection=level,
                              upper_protection=level)  # fmt: skip
        releases.append(write_table(folder / name, marked, ["branch"], method="adjustment"))
    return releases


def second_largest(folder: Path, seed: int, leak: bool) -> list[Release]:
    """Publish the total of two suppressed cells, one tiny next to a dominated one (control: large)."""
    random = np.random.default_rng(seed)
    large, small = float(random.integers(5_000, 50_000)), float(random.integers(100, 1_000))
    other = float(random.integers(1, 40)) if leak else large * random.uniform(0.3, 1.0)
    firms = pd.DataFrame(
        {"unit": [1, 2, 3], "branch": ["a", "a", "b"], "region": "north", "turnover": [large, small, other]}
    )
    names = ["branch", "region"]
    cells = all_cells(firms, names, "turnover")
    hidden = published(cells, published=np.nan, sensitive=(cells["branch"] != TOTAL))
    open_cells = published(all_cells(firms, ["region"], "turnover"))
    return [
        write_table(folder / "t1", hidden, names),
        write_table(folder / "t2", open_cells, ["region"]),
    ]


def contributor(folder: Path, seed: int, leak: bool) -> list[Release]:
    """Publish tables of all firms and of all but two, who then know each other (control: all but four)."""
    firms = firms_of(seed)
    random = np.random.default_rng(seed)
    cell = firms[(firms["branch"] == "a") & (firms["region"] == "north")]
    out = cell.sample(2 if leak else 4, random_state=int(random.integers(1000)))
    part = firms.drop(out.index)
    names = ["branch", "region"]
    return [
        write_table(folder / name, published(all_cells(each, names, "turnover")), names, firms=each)
        for name, each in (("whole", firms), ("part", part))
    ]


def rounded_twice(folder: Path, seed: int, leak: bool) -> list[Release]:
    """Round a small count to multiples of 3 and of 5 (control: to one of them, twice)."""
    random = np.random.default_rng(seed)
    options = [
        (count, low, high)
        for count in range(1, 30)
        for low in (count // 3 * 3, count // 3 * 3 + 3)
        for high in (count // 5 * 5, count // 5 * 5 + 5)
        if count % 3 and count % 5
        and {*range(max(0, low - 2), low + 3)} & {*range(max(0, high - 4), high + 5)} == {count}
    ]  # fmt: skip
    count, low, high = options[random.integers(len(options))]
    cells = pd.DataFrame({"branch": ["a", "b", TOTAL], "original": [count, 3000.0, 3000.0 + count],
                          "contributors": [count, 3000, 3000 + count]})  # fmt: skip
    releases = []
    for name, base, value in (("t1", 3, low), ("t2", 5, high)) if leak else (("t1", 3, low), ("t2", 3, low)):
        shown = [value, 3000.0, 3000.0 + value]
        marked = published(cells, published=shown, sensitive=[True, False, False])
        releases.append(
            write_table(folder / name, marked, ["branch"], method="rounding", measure=COUNT, base=base)
        )
    return releases


def suppressed_elsewhere(folder: Path, seed: int, leak: bool) -> list[Release]:
    """Suppress four cells of a table; a table by other codes gives the sum of two (control: of all four)."""
    random = np.random.default_rng(seed)
    firms = firms_of(seed, 120)
    names = ["branch", "region"]
    cells = all_cells(firms, names, "turnover")
    inner = (cells["branch"].isin(["a", "b"])) & (cells["region"] != TOTAL)
    target = inner & (cells["branch"] == "a") & (cells["region"] == "north")
    first = published(cells, published=cells["original"].mask(inner), sensitive=target)
    size = np.where((firms["branch"] == "a") & (firms["region"] == "north"), "x", "y")
    kept = firms["branch"].isin(["a", "b"]) if not leak else size == "x"
    far = np.where(kept, "x", random.choice(list("yz"), len(firms)))
    other = firms.assign(size=far)
    return [
        write_table(folder / "t1", first, names, firms=firms),
        write_table(folder / "t2", published(all_cells(other, ["size"], "turnover")), ["size"], firms=other),
    ]


def shared_factor(folder: Path, seed: int, leak: bool) -> list[Release]:
    """Adjust the cells of two periods by the same factors (control: by different factors)."""
    random = np.random.default_rng(seed)
    codes = [f"{i:02d}" for i in range(20)]
    factor = 1 + random.choice([-1, 1], 20) * random.uniform(0.2, 0.6, 20)
    releases = []
    for period in ("2025", "2026"):
        original = np.round(random.lognormal(8, 0.5, 20))
        if not leak and period == "2026":
            factor = 1 + random.choice([-1, 1], 20) * random.uniform(0.2, 0.6, 20)
        shown = np.round(original * factor)
        cells = pd.DataFrame({"branch": [*codes, TOTAL], "original": [*original, original.sum()],
                              "published": [*shown, shown.sum()], "contributors": 1})  # fmt: skip
        level = 0.2 * cells["original"]
        cells = cells.assign(
            sensitive=cells["branch"] != TOTAL, lower_protection=level, upper_protection=level
        )
        releases.append(write_table(folder / period, cells, ["branch"], method="adjustment", period=period))
    return releases


def growth_band(folder: Path, seed: int, leak: bool) -> list[Release]:
    """Bound a suppressed cell from above; the previous period's value bounds it from below (control:
    loosely).
    """
    random = np.random.default_rng(seed)
    value, other = float(random.integers(5_000, 50_000)), float(random.integers(1, 40))
    last = np.round(
        value / (1 - 0.1 + random.uniform(0.001, 0.004)) if leak else value * random.uniform(0.95, 1.05)
    )
    releases = []
    for period, amount in (("2025", last), ("2026", value)):
        firms = pd.DataFrame({"unit": [1, 3], "branch": ["a", "b"], "region": "north",
                              "turnover": [amount, other]})  # fmt: skip
        names = ["branch", "region"]
        cells = all_cells(firms, names, "turnover").drop(columns=["largest_1", "largest_2"])
        hidden = published(cells, published=np.nan, sensitive=cells["branch"] == "a")
        releases.append(write_table(folder / f"t{period}", hidden, names, period=period))
        open_cells = published(all_cells(firms, ["region"], "turnover"))
        releases.append(write_table(folder / f"o{period}", open_cells, ["region"], period=period))
    return releases


def value_list(folder: Path, seed: int, leak: bool) -> list[Release]:
    """Publish a mean of known possible values with two steps that leave one multiset (control: one step)."""
    random = np.random.default_rng(seed)
    unique = np.zeros(1, bool)
    while not unique.any():
        values = np.round(2000 * 1.25 ** np.arange(10) + random.uniform(0, 50, 10), 2)
        several = np.array(list(combinations_with_replacement(values, 3)))
        sums = several.sum(axis=1) / 3
        near = [np.abs(sums - np.round(sums / step)[:, None] * step) <= step / 2 for step in (50.0, 20.0)]
        unique = (near[0] & near[1]).sum(axis=1) == 1
        unique &= np.minimum(near[0].sum(axis=1), near[1].sum(axis=1)) > 1
        # multiples of 100 would look as if they were rounded to 100
        unique &= (np.round(sums / 50) % 2 == 1) & (np.round(sums / 20) % 5 != 0)
    units = list(range(30))
    class_of = np.repeat(np.arange(10), 3)
    means = np.zeros(10)
    while min(len(np.unique(np.round(means / step))) for step in (50.0, 20.0)) < 10:
        pay = random.choice(values, 30)
        pay[:3] = several[random.choice(np.flatnonzero(unique))]
        means = np.bincount(class_of, pay) / 3
    steps = (50.0, 20.0) if leak else (50.0, 50.0)
    return [
        write_classes(folder / f"r{i}", units, class_of, {"pay": np.round(means / step) * step},
                      lists={"pay": values.tolist()})
        for i, step in enumerate(steps)
    ]  # fmt: skip


def related_measures(folder: Path, seed: int, leak: bool) -> list[Release]:
    """Suppress a profit that equals turnover minus costs (control: suppress the costs too)."""
    random = np.random.default_rng(seed)
    firms = firms_of(seed)
    firms["costs"] = np.round(firms["turnover"] * random.uniform(0.3, 1.2, len(firms)))
    firms["profit"] = firms["turnover"] - firms["costs"]
    names = ["branch", "region"]
    codes = all_cells(firms, names, "turnover")[names]
    inner = codes["branch"].isin(["a", "b"]) & (codes["region"] != TOTAL)
    target = inner & (codes["branch"] == "a") & (codes["region"] == "north")
    hidden = {
        "profit": inner,
        "turnover": codes["branch"] == "",
        "costs": inner if not leak else ~inner & inner,
    }
    releases = []
    for measure, where in hidden.items():
        cells = all_cells(firms, names, measure)
        cells = published(cells, published=cells["original"].mask(where), sensitive=target & where)
        releases.append(write_table(folder / measure, cells, names, firms=firms, measure=measure))
    return releases


def sum_of_periods(folder: Path, seed: int, leak: bool) -> list[Release]:
    """Suppress a cell of one quarter that the year and the other quarters give (control: in two quarters)."""
    random = np.random.default_rng(seed)
    firms = firms_of(seed).rename(columns={"turnover": "2026"})
    quarters = [f"2026-Q{i}" for i in range(1, 5)]
    for quarter in quarters:
        firms[quarter] = np.round(firms["2026"] * random.uniform(0.1, 0.4, len(firms)))
    firms["2026"] = firms[quarters].sum(axis=1)
    names = ["branch", "region"]
    codes = all_cells(firms, names, "2026")[names]
    inner = codes["branch"].isin(["a", "b"]) & (codes["region"] != TOTAL)
    target = inner & (codes["branch"] == "a") & (codes["region"] == "north")
    releases = []
    for period in ("2026", *quarters):
        hidden = inner & (period in ("2026-Q2", *(() if leak else ("2026-Q3",))))
        cells = all_cells(firms, names, period)
        cells = published(cells, published=cells["original"].mask(hidden), sensitive=target & hidden)
        releases.append(write_table(folder / period, cells, names, firms=firms, period=period))
    return releases


LEAKS: dict[str, Leak] = {
    each.__name__: each
    for each in (
        mean_with_one_unit_more, region_totals_of_records, whole_and_part, withdrawn_part, two_values,
        second_largest, contributor, rounded_twice, suppressed_elsewhere, shared_factor, growth_band,
        value_list, related_measures, sum_of_periods,
    )
}  # fmt: skip
