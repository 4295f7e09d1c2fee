"""Generate the files of the examples: python docs/examples/generate.py. Nobody in them exists."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
REGIONS = ("north", "south", "west")


def survey(seed: int = 1) -> pd.DataFrame:
    """Return a household survey: 24 to 31 households drawn in each region, one weight per region."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([1, 2, 3, 4, 5], 150, p=[0.3, 0.33, 0.16, 0.15, 0.06])
    home = np.repeat(np.arange(150), sizes)
    n = len(home)
    region = rng.integers(0, 3, 150)[home]
    age = np.clip(np.round(rng.gamma(3.2, 13.0, n)), 0, 95).astype(int)
    adult = age >= 18
    work = np.where(~adult, "in education", rng.choice(["employed", "not employed"], n, p=[0.65, 0.35]))
    work = np.where(age > 66, "retired", work)
    education = np.where(adult, rng.choice(["low", "medium", "high"], n, p=[0.2, 0.5, 0.3]), "low")
    scale = np.where(work == "employed", 33_000, np.where(work == "retired", 19_000, 9_000))
    income = np.where(adult, np.round(rng.lognormal(0.0, 0.4, n) * scale, 2), 0.0)
    income = np.where(adult & (rng.random(n) < 0.12), -9, income)
    return pd.DataFrame(
        {
            "person": [f"P{each:04}" for each in rng.permutation(n) + 1],
            "household": [f"H{each:03}" for each in home + 1],
            "region": np.array(REGIONS)[region],
            "sex": rng.choice(["f", "m"], n),
            "age": age,
            "education": education,
            "work": work,
            "income": income,
            "health": rng.choice(["good", "fair", "poor"], n, p=[0.55, 0.3, 0.15]),
            "weight": np.array([41.5, 38.25, 56.75])[region],
        }
    )


def businesses(n: int = 400, seed: int = 2) -> pd.DataFrame:
    """Return a business survey: activity in two levels, region, size class, employees and turnover."""
    rng = np.random.default_rng(seed)
    division = rng.choice(["C10", "C25", "C28", "F41", "F43", "G46", "G47"], n,
                          p=[0.1, 0.15, 0.1, 0.15, 0.2, 0.1, 0.2])  # fmt: skip
    employees = np.maximum(1, np.round(rng.lognormal(2.2, 1.1, n))).astype(int)
    turnover = np.round(employees * rng.lognormal(4.6, 0.5, n), 1)
    size = np.where(employees < 10, "small", np.where(employees < 50, "medium", "large"))
    return pd.DataFrame(
        {
            "business": [f"B{each:04}" for each in rng.permutation(n) + 1],
            "region": rng.choice(REGIONS, n, p=[0.4, 0.35, 0.25]),
            "section": [each[0] for each in division],
            "division": division,
            "size": size,
            "employees": employees,
            "turnover": turnover,
        }
    )


def register(seed: int = 3) -> dict[str, pd.DataFrame]:
    """Return a register in two months: 12 persons leave, 14 enter, and 5 have another income."""
    rng = np.random.default_rng(seed)
    n = 250
    everybody = pd.DataFrame(
        {
            "person": [f"R{each:04}" for each in rng.permutation(n + 14) + 1],
            "region": rng.choice(REGIONS, n + 14),
            "sex": rng.choice(["f", "m"], n + 14),
            "age": rng.integers(18, 90, n + 14),
            "income": np.round(rng.lognormal(10.2, 0.5, n + 14), -2).astype(int),
        }
    )
    october = everybody[:n]
    november = everybody[12:].copy()
    november.iloc[:5, 4] += 1_000
    return {"2026-10": october, "2026-11": november}


def census(seed: int = 4) -> pd.DataFrame:
    """Return a census of 260 households in three regions of three municipalities each."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, 260)
    home = np.repeat(np.arange(260), sizes)
    n = len(home)
    municipality = rng.integers(0, 9, 260)[home]
    return pd.DataFrame(
        {
            "person": [f"C{each:04}" for each in rng.permutation(n) + 1],
            "household": [f"H{each:03}" for each in home + 1],
            "region": np.array(REGIONS)[municipality // 3],
            "municipality": [f"M{each}" for each in municipality + 1],
            "sex": rng.choice(["f", "m"], n),
            "age": rng.choice(["0-17", "18-64", "65+"], n, p=[0.2, 0.6, 0.2]),
            "work": rng.choice(["employed", "not employed", "other"], n, p=[0.5, 0.1, 0.4]),
        }
    )


def main() -> None:
    """Write all files."""
    persons = survey()
    persons.to_csv(HERE / "survey" / "persons.csv", sep=";", decimal=",", index=False, float_format="%.2f")
    businesses().to_csv(HERE / "business" / "businesses.csv", index=False)
    for month, frame in register().items():
        frame.to_csv(HERE / "register" / f"{month}.csv", index=False)
    census().to_csv(HERE / "census" / "persons.csv", index=False)


if __name__ == "__main__":
    main()
