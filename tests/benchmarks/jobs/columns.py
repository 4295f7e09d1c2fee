"""Random columns like those of agencies: skewed, constant, large, heaped, with missing values."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd

#: Probabilities of the efforts fast, standard, thorough and exact.
EFFORT_SHARES = (0.5, 0.3, 0.1, 0.1)
#: Share of columns with missing values, and share of missing values in these.
WITH_GAPS, GAPS = 0.25, (0.02, 0.3)


def categories(random: np.random.Generator, n: int) -> pd.Series:
    """Draw a nominal column with 1 to 40 categories: text, numbers, booleans, dates or times."""
    number = int(random.choice([1, 2, 3, 5, 12, 40]))
    shares = random.dirichlet(np.full(number, random.choice([0.3, 1.0, 5.0])))
    drawn = random.choice(number, n, p=shares)
    day, moment = datetime.date(2000, 1, 1), pd.Timestamp("2020-03-29 01:30")
    kinds = {
        "text": [f"v{i}" for i in range(number)],
        "odd text": [f"é{i} \"',;" for i in range(number)],
        "marked text": [
            ("<b>{}</b>", "{{}}", " ", "NULL", "007", "nan")[i % 6] + str(i) for i in range(number)
        ],
        "date": [day + datetime.timedelta(days=i) for i in range(number)],
        "exact": [Decimal(i).scaleb(-2) for i in range(number)],
    }
    moments = pd.Series(moment + pd.to_timedelta(drawn, unit="h"))
    times = {
        "moment": moments.dt.as_unit("us"),
        "fine moment": moments.dt.as_unit("ns"),
        "instant": moments.dt.as_unit("ms").dt.tz_localize("UTC"),
    }
    kind = str(random.choice([*kinds, *times, "integer", "short", "boolean", "half"]))
    if kind in times:
        return _with_gaps(times[kind], random)
    if kind in kinds:
        return _with_gaps(pd.Series(np.array(kinds[kind], dtype=object)[drawn]), random)
    values = {
        "integer": drawn * 7 - 3,
        "short": drawn.astype(np.int8),
        "boolean": drawn % 2 == 1,
        "half": drawn / 2,
    }[kind]
    return _with_gaps(pd.Series(values), random)


def numbers(random: np.random.Generator, n: int) -> pd.Series:
    """Draw a numeric column with a random distribution and type."""
    shapes = {
        "normal": lambda: random.normal(size=n),
        "skewed": lambda: np.round(random.lognormal(7, 2, n), 2),
        "whole": lambda: random.integers(-5, 100, n),
        "constant": lambda: np.full(n, 3.5),
        "long": lambda: random.integers(2**53, 2**60, n),
        "huge": lambda: random.normal(size=n) * 1e15,
        "tiny": lambda: random.normal(size=n) * 1e-9,
        "single": lambda: random.normal(size=n).astype(np.float32),
        "decimal": lambda: [Decimal(int(each)).scaleb(-2) for each in random.integers(0, 10**7, n)],
        "heaped": lambda: np.round(random.lognormal(5, 1, n), -1),
        "zeros": lambda: np.where(random.random(n) < 0.5, -0.0, random.integers(0, 2, n)),
        "outliers": lambda: np.where(random.random(n) < 0.02, 1e9, 1.0) * random.random(n),
    }
    values = shapes[str(random.choice(list(shapes)))]()
    return _with_gaps(pd.Series(values, dtype=object if isinstance(values, list) else None), random)


def _with_gaps(column: pd.Series, random: np.random.Generator) -> pd.Series:
    if random.random() >= WITH_GAPS:
        return column
    if column.dtype.kind in "iub":
        column = column.astype({"b": "boolean"}.get(column.dtype.kind, "Int64"))
    return column.mask(random.random(len(column)) < random.choice(GAPS))
