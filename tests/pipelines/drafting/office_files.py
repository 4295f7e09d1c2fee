"""Thirty synthetic files like those of statistical offices, with the true role of each column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

KEYS = frozenset({"unit", "identifier", "household"})
"""Roles for columns that identify units; columns with these roles are neither published nor averaged."""


@dataclass(frozen=True)
class OfficeFile:
    """A file with the true roles of its columns.

    Attributes
    ----------
    name : str
    frame : DataFrame
    truth : dict of column to role or kind
        "nominal" and "numeric" are quasi-identifiers of that kind, "key" any of `KEYS`.
    suffix : str
        "csv" or "parquet".
    options : dict
        Options of the CSV writer.
    partitions : tuple of str
        Partition columns, whose values are in the names of folders.
    """

    name: str
    frame: pd.DataFrame
    truth: dict[str, str]
    suffix: str
    options: dict[str, str]
    partitions: tuple[str, ...] = ()

    def write(self, folder: Path) -> Path:
        """Write the file below a folder and return its path."""
        path = folder / (self.name if self.partitions else f"{self.name}.{self.suffix}")
        if self.suffix == "parquet":
            self.frame.to_parquet(path, index=False, partition_cols=list(self.partitions) or None)
        elif not self.partitions:
            self.frame.to_csv(path, index=False, **self.options)
        else:
            for values, part in self.frame.groupby(list(self.partitions)):
                names = [f"{name}={value}" for name, value in zip(self.partitions, values, strict=True)]
                inside = path.joinpath(*names)
                inside.mkdir(parents=True)
                part.drop(columns=list(self.partitions)).to_csv(
                    inside / "part.csv", index=False, **self.options
                )
        return path

    def right(self, drafted_roles: dict[str, str]) -> list[str]:
        """Return the columns whose drafted role or kind is correct."""
        return [
            name
            for name, true in self.truth.items()
            if drafted_roles.get(name) == true or (true == "key" and drafted_roles.get(name) in KEYS)
        ]


def office_files(seed: int = 1, records: int = 400) -> list[OfficeFile]:
    """Return all thirty files, which depend only on the seed."""
    rng = np.random.default_rng(seed)
    files = []
    for number, make in enumerate(_MAKERS):
        frame, truth, suffix, options, partitions = make(rng, records)
        files.append(
            OfficeFile(f"{number + 1:02d}_{make.__name__}", frame, truth, suffix, options, partitions)
        )
    return files


Made = tuple[pd.DataFrame, dict[str, str], str, dict[str, str], tuple[str, ...]]
_MAKERS: list[Callable[[np.random.Generator, int], Made]] = []

COMMA = {"sep": ";", "decimal": ","}


def _persons(rng: np.random.Generator, n: int) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    columns = {
        "sex": rng.choice(["f", "m"], n),
        "age": rng.integers(16, 90, n),
        "marital": rng.integers(1, 5, n),
        "region": rng.choice(["north", "south", "west"], n),
        "income": np.round(rng.lognormal(10, 0.6, n), -2),
    }
    kinds = {
        "sex": "nominal",
        "age": "numeric",
        "marital": "nominal",
        "region": "region",
        "income": "numeric",
    }
    return columns, kinds


def _number(rng: np.random.Generator, n: int, low: int = 100_000, high: int = 999_999) -> np.ndarray:
    return rng.choice(np.arange(low, high), n, replace=False)


def _maker(
    suffix: str, options: dict[str, str] | None = None, partitions: tuple[str, ...] = ()
) -> Callable[[Callable[[np.random.Generator, int], tuple[dict[str, np.ndarray], dict[str, str]]]], object]:
    def decorate(make: Callable[..., tuple[dict[str, np.ndarray], dict[str, str]]]) -> object:
        def made(rng: np.random.Generator, n: int) -> Made:
            columns, truth = make(rng, n)
            return pd.DataFrame(columns), truth, suffix, options or {}, partitions

        made.__name__ = make.__name__.strip("_")
        _MAKERS.append(made)
        return make

    return decorate


def _holes(rng: np.random.Generator, values: np.ndarray, share: float = 0.02) -> np.ndarray:
    return np.where(rng.random(len(values)) < share, np.nan, values)


def _float_codes(rng: np.random.Generator, n: int) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    columns, truth = _persons(rng, n)
    columns |= {
        "personid": np.arange(1, n + 1) + 5_000.0,
        "marital": _holes(rng, columns["marital"].astype(float)),
        "occupation": _holes(rng, rng.integers(1, 10, n).astype(float)),
        "children": rng.integers(0, 5, n).astype(float),
        "rent": rng.gamma(9, 100, n).round(0),
    }
    return columns, truth | {
        "personid": "key", "occupation": "nominal", "children": "nominal", "rent": "numeric"
    }  # fmt: skip


def _sentinels(rng: np.random.Generator, n: int) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    columns, truth = _persons(rng, n)
    hours = rng.integers(5, 61, n)
    columns |= {
        "caseno": _number(rng, n),
        "hours": np.where(rng.random(n) < 0.3, rng.choice([97, 99], n), hours),
        "savings": np.where(rng.random(n) < 0.03, -9, rng.integers(0, 40_000, n)),
        "wealth": np.where(rng.random(n) < 0.03, 999_999, rng.integers(10, 80_000, n) * 5),
        "health": rng.choice([1, 2, 3, 4, 5, 9], n),
    }
    return columns, truth | {
        "caseno": "key", "hours": "numeric", "savings": "numeric", "wealth": "numeric", "health": "sensitive"
    }  # fmt: skip


def _registers(rng: np.random.Generator, n: int) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    columns, truth = _persons(rng, n)
    columns |= {
        "taxnumber": _number(rng, n, 10_000_000, 99_999_999),
        "employed_since": pd.to_datetime("1990-01-01") + pd.to_timedelta(rng.integers(0, 9_000, n), "D"),
        "pay": rng.lognormal(12, 0.25, n).round(0),
        "year": rng.choice([2023, 2024, 2025], n),
        "area": rng.choice(["a", "b"], n),
    }
    return columns, truth | {
        "taxnumber": "key", "employed_since": "identifier", "pay": "numeric", "year": "nominal",
        "area": "nominal",
    }  # fmt: skip


def _amounts(rng: np.random.Generator, n: int) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    columns, truth = _persons(rng, n)
    columns |= {
        "firmnr": np.arange(n) * 3 + 70_001,
        "turnover": rng.lognormal(13, 1, n).round(2),
        "stock": rng.lognormal(9, 1, n).round(2),
        "nace2": rng.choice([10, 11, 13, 14, 25, 28, 45, 46, 47], n),
    }
    return columns, truth | {
        "firmnr": "key", "turnover": "numeric", "stock": "numeric", "nace2": "nominal"
    }  # fmt: skip


def _marked(columns: dict[str, np.ndarray], thousands: str, decimal: str) -> dict[str, np.ndarray]:
    def text(value: float) -> str:
        return f"{value:,.2f}".translate(str.maketrans(",.", f"{thousands}{decimal}"))

    amounts = {name: np.array([text(v) for v in columns[name]]) for name in ("income", "turnover", "stock")}
    return columns | amounts


def _panel(rng: np.random.Generator, n: int) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    things, months = max(n // 12, 12), 12
    of = np.repeat(np.arange(things), months)
    columns = {
        "utility_number": _number(rng, things, 1_000, 30_000)[of],
        "month": np.tile(np.arange(1, months + 1), things),
        "state": rng.choice(["CA", "NY", "TX"], things)[of],
        "ownership": rng.integers(1, 4, things)[of],
        "sales": rng.lognormal(9, 1, len(of)).round(0),
        "revenue": rng.lognormal(11, 1, len(of)).round(1),
        "customers": rng.integers(100, 90_000, things)[of] + rng.integers(0, 300, len(of)),
    }
    return columns, {
        "utility_number": "key", "month": "nominal", "state": "region", "ownership": "nominal",
        "sales": "numeric", "revenue": "numeric", "customers": "numeric",
    }  # fmt: skip


def _households(rng: np.random.Generator, n: int) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    homes = n // 2
    of = np.sort(rng.integers(0, homes, n))
    columns, truth = _persons(rng, n)
    columns |= {
        "hhid": (np.arange(homes) * 7 + 20_011)[of],
        "region": rng.choice(["north", "south", "west"], homes)[of],
        "dwelling_type": rng.integers(1, 5, homes)[of],
        "household_income": rng.lognormal(10, 0.5, homes).round(0)[of],
        "weight": rng.uniform(50, 500, n).round(4),
        "diagnosis": rng.choice(["a", "b", "c", "none"], n),
    }
    return columns, truth | {
        "hhid": "key", "dwelling_type": "nominal", "household_income": "numeric", "weight": "weight",
        "diagnosis": "sensitive",
    }  # fmt: skip


def _wide(rng: np.random.Generator, n: int) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    columns, truth = {"respid": np.arange(n) + 1_000_001}, {"respid": "key"}
    for i in range(140):
        codes = rng.integers(1, rng.integers(3, 8), n).astype(float)
        columns[f"q{i}"] = _holes(rng, codes) if i % 3 else codes
        truth[f"q{i}"] = "nominal"
    for i in range(50):
        columns[f"v{i}"] = rng.lognormal(rng.uniform(4, 9), 0.8, n).round(int(rng.integers(0, 3)))
        truth[f"v{i}"] = "numeric"
    for i in range(8):
        columns[f"t{i}"] = rng.choice(["yes", "no", "never"], n)
        truth[f"t{i}"] = "nominal"
    return columns | {"pweight": rng.uniform(1, 9, n).round(3)}, truth | {"pweight": "weight"}


for _suffix, _options in (
    ("csv", {}),
    ("csv", COMMA),
    ("parquet", {}),
    ("csv", {"sep": "\t", "na_rep": "NA"}),
):
    _maker(_suffix, _options)(_float_codes)
for _suffix, _options in (("csv", {}), ("csv", COMMA), ("parquet", {}), ("csv", {"sep": "|"})):
    _maker(_suffix, _options)(_sentinels)
for _suffix, _partitions in (
    ("parquet", ("year",)),
    ("parquet", ("region", "year")),
    ("csv", ("year", "area")),
    ("parquet", ("area",)),
):
    _maker(_suffix, {}, _partitions)(_registers)
for _suffix, _options in (
    ("csv", COMMA),
    ("csv", COMMA | {"encoding": "windows-1252"}),
    ("csv", {"sep": "\t", "decimal": ","}),
):
    _maker(_suffix, _options)(_amounts)


def _renamed(
    make: Callable[..., tuple[dict[str, np.ndarray], dict[str, str]]], **names: str
) -> Callable[..., tuple[dict[str, np.ndarray], dict[str, str]]]:
    def renamed(rng: np.random.Generator, n: int) -> tuple[dict[str, np.ndarray], dict[str, str]]:
        made = make(rng, n)
        columns, truth = ({names.get(key, key): value for key, value in each.items()} for each in made)
        return columns, truth

    renamed.__name__ = make.__name__
    return renamed


def _with_marks(thousands: str, decimal: str) -> Callable[..., tuple[dict[str, np.ndarray], dict[str, str]]]:
    def thousands_marks(rng: np.random.Generator, n: int) -> tuple[dict[str, np.ndarray], dict[str, str]]:
        columns, truth = _amounts(rng, n)
        return _marked(columns, thousands, decimal), truth

    return thousands_marks


_maker("csv", {"sep": ";"})(_with_marks(".", ","))
_maker("csv", {})(_with_marks(",", "."))
_maker("csv", {"sep": ";"})(_with_marks(" ", ","))
_maker("csv")(_panel)
_maker("parquet")(_renamed(_panel, utility_number="UTILITYID"))
_maker("csv", COMMA)(_renamed(_panel, utility_number="v1", month="monat", sales="umsatz"))
_maker("parquet")(_renamed(_panel, utility_number="kundennummer"))
_maker("csv")(_renamed(_panel, utility_number="ent", month="period"))
_maker("csv")(_households)
_maker("parquet")(_renamed(_households, hhid="HHNR"))
_maker("csv", COMMA)(_renamed(_households, hhid="haushaltsnummer", weight="gewicht", income="einkommen"))
_maker("csv")(_renamed(_households, hhid="num_family", weight="hhwt"))
_maker("csv")(_wide)
_maker("parquet")(_wide)
_maker("csv", COMMA)(_renamed(_wide, respid="LFDNR"))
