"""Files generated to the layouts of published codebooks, with the roles that an expert gives.

An expert role is one or several words, separated by "|":

- "unit", "household", "weight", "region", "sensitive": that role;
- "key": a unit, household or identifier key, which is not published;
- "left": an omitted column: a name, free text, or a column computed from others;
- "nominal", "numeric": a quasi-identifier, or a column published as it is, of that kind.

The role engine was developed with the layouts of `DEVELOPED`. The layouts of other files were added later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

KEYS = frozenset({"unit", "identifier", "household"})
ISCO_2 = [11, 12, 13, 21, 22, 23, 24, 31, 32, 33, 34, 41, 42, 51, 52, 61, 71, 72, 73, 74, 81, 82, 83, 91, 93]
ISCO_3 = [10 * code + digit for code in ISCO_2 for digit in ((1, 2) if code % 2 else (1, 3, 4))]


@dataclass(frozen=True)
class Layout:
    """A file with expert roles."""

    name: str
    frame: pd.DataFrame
    expert: dict[str, str]

    def write(self, folder: Path) -> Path:
        """Write the file as CSV and return its path."""
        path = folder / f"{self.name}.csv"
        self.frame.to_csv(path, index=False)
        return path


def is_right(expert: str, role: str, kind: str | None) -> bool:
    """Return whether a drafted role and kind is among those of an expert."""
    for word in expert.split("|"):
        if word == role or (word == "key" and role in KEYS):
            return True
        if word == "left" and role in ("identifier", "derived"):
            return True
        if word == kind and role in ("quasi_identifier", "other"):
            return True
        if word == "nominal" and role == "region":
            return True
    return False


def disqualified(expert: str, role: str, kind: str | None) -> str | None:
    """Return the drafted role that a methodologist would call disqualifying, or None."""
    words = set(expert.split("|"))
    averaged = role == "quasi_identifier" and kind == "numeric"
    if averaged and words != {"left"} and not words & {"numeric", "sensitive"}:
        return "averaged"
    if words <= {"unit", "household", "key"} and role not in KEYS:
        return "a key is published"
    if ("unit" in words) != (role == "unit") and role in ("unit", "household") and "key" not in words:
        return "unit mistaken"
    if ("household" in words) != (role == "household") and role == "household" and "key" not in words:
        return "household mistaken"
    if words == {"weight"} and role == "quasi_identifier":
        return "a weight is protected"
    return None


def homes(rng: np.random.Generator, n: int, most: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Return the household of each person and the number of the person in the household, (n,) each."""
    sizes = rng.choice(np.arange(1, most + 1), n, p=_falling(most))
    of = np.repeat(np.arange(n), sizes)[:n]
    first = np.r_[True, of[1:] != of[:-1]]
    start = np.maximum.accumulate(np.where(first, np.arange(n), 0))
    return of, np.arange(n) - start + 1


def _falling(most: int) -> np.ndarray:
    shares = 1.0 / np.arange(1, most + 1)
    return shares / shares.sum()


def amounts(rng: np.random.Generator, n: int, share: float, typical: float = 15_000.0) -> np.ndarray:
    """Return amounts with decimals that are 0 for all but a share of the records."""
    return np.where(rng.random(n) < share, rng.lognormal(np.log(typical), 0.6, n).round(2), 0.0)


def holes(rng: np.random.Generator, values: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return values with NaN for the missing ones."""
    return np.where(missing, np.nan, values)


def eu_silc(rng: np.random.Generator, n: int = 4_000) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the layout of EU-SILC in the package laeken."""
    of, line = homes(rng, n)
    size = np.bincount(of)[of]
    regions = np.array(["Burgenland", "Carinthia", "Lower Austria", "Salzburg", "Styria", "Tyrol", "Vienna"])
    child = line > 2
    age = np.where(child, rng.integers(-1, 20, n), rng.integers(18, 90, n))
    young = age < 16
    weight = rng.uniform(200, 900, of.max() + 1).round(4)[of]
    incomes = {
        name: holes(rng, amounts(rng, n, share), young)
        for name, share in (
            ("py010n", 0.5),
            ("py050n", 0.1),
            ("py090n", 0.08),
            ("py100n", 0.2),
            ("py140n", 0.03),
        )
    }
    household = {
        name: amounts(rng, of.max() + 1, share)[of]
        for name, share in (
            ("hy040n", 0.05),
            ("hy050n", 0.3),
            ("hy070n", 0.05),
            ("hy090n", 0.6),
            ("hy145n", 0.4),
        )
    }
    net = np.nansum([*incomes.values()], axis=0)
    eqss = (1.0 + 0.5 * np.maximum(size - 1, 0) * 1.0).round(1)
    total = np.bincount(of, net)[of] + sum(household.values())
    frame = pd.DataFrame(
        {
            "db030": of + 1,
            "hsize": size,
            "db040": regions[rng.integers(0, 7, of.max() + 1)[of]],
            "rb030": (of + 1) * 100 + line,
            "age": age,
            "rb090": rng.choice(["male", "female"], n),
            "pl030": holes(rng, rng.integers(1, 8, n).astype(float), young),
            "pb220a": np.where(young, None, rng.choice(["AT", "EU", "Other"], n, p=[0.85, 0.05, 0.1])),
            **incomes,
            **household,
            "eqSS": eqss,
            "eqIncome": (total / eqss).round(2),
            "db090": weight,
            "rb050": weight,
        }
    )
    expert = {
        "db030": "household", "hsize": "nominal", "db040": "region", "rb030": "unit", "age": "numeric",
        "rb090": "nominal", "pl030": "nominal", "pb220a": "nominal", "eqSS": "numeric|nominal|left",
        "eqIncome": "sensitive|numeric", "db090": "weight", "rb050": "weight",
        **dict.fromkeys([*incomes, *household], "sensitive|numeric"),
    }  # fmt: skip
    return frame, expert


def ses(rng: np.random.Generator, n: int = 4_000) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the layout of the Structure of Earnings Survey in the package laeken."""
    firms = 200
    of = np.sort(rng.integers(0, firms, n))
    nace = np.array(["C", "D", "E", "F", "G", "H", "I", "J", "K", "M", "N", "O"])
    employers = rng.uniform(1.0, 6.0, firms).round(6)
    inside = rng.uniform(1.0, 30.0, firms).round(6)
    hours = rng.uniform(60, 220, n).round(2)
    hourly = rng.lognormal(2.6, 0.45, n)
    monthly = (hours * hourly).round(2)
    frame = pd.DataFrame(
        {
            "location": rng.choice(["AT1", "AT2", "AT3"], firms)[of],
            "NACE1": nace[rng.integers(0, len(nace), firms)[of]],
            "size": rng.choice(["E10_49", "E50_249", "E250_499", "E500_999", "E1000"], firms)[of],
            "economicFinanc": rng.choice(["A", "B"], firms, p=[0.1, 0.9])[of],
            "payAgreement": rng.choice(["A", "B", "C", "N"], firms)[of],
            "IDunit": (rng.permutation(firms) + 1_001)[of],
            "sex": rng.choice(["male", "female"], n),
            "age": rng.choice(["(14,19]", "(19,29]", "(29,39]", "(39,49]", "(49,59]", "(59,120]"], n),
            "education": rng.choice(["ISCED 0 and 1", "ISCED 2", "ISCED 3 and 4", "ISCED 5A", "ISCED 5B"], n),
            "occupation": rng.choice(ISCO_2, n),
            "contract": rng.choice(["A", "B", "C"], n, p=[0.85, 0.1, 0.05]),
            "fullPart": rng.choice(["FT", "PT"], n),
            "lengthService": rng.integers(0, 45, n),
            "weeks": np.where(rng.random(n) < 0.7, 52.14, rng.uniform(2, 52, n).round(2)),
            "hoursPaid": hours,
            "overtimeHours": np.where(rng.random(n) < 0.8, 0, rng.integers(1, 60, n)),
            "shareNormalHours": np.where(rng.random(n) < 0.7, 100.0, rng.uniform(10, 99, n).round(2)),
            "holiday": rng.integers(0, 38, n),
            "earningsOvertime": amounts(rng, n, 0.2, 200.0),
            "earningsMonth": monthly,
            "earnings": (monthly * 14 * rng.uniform(0.9, 1.2, n)).round(2),
            "earningsHour": (monthly / hours).round(2),
            "weightsEmployers": employers[of],
            "weightsEmployees": inside[of],
            "weights": (employers * inside)[of].round(6),
        }
    )  # fmt: skip
    expert = {
        "IDunit": "key", "lengthService": "numeric", "weeks": "numeric", "hoursPaid": "numeric",
        "overtimeHours": "numeric", "shareNormalHours": "numeric", "holiday": "numeric",
        "weightsEmployers": "weight", "weightsEmployees": "weight", "weights": "weight", "location": "region",
        "earningsOvertime": "sensitive|numeric", "earningsMonth": "sensitive|numeric",
        "earnings": "sensitive|numeric", "earningsHour": "sensitive|numeric|left",
    }  # fmt: skip
    return frame, {name: expert.get(name, "nominal") for name in frame}


def eu_lfs(rng: np.random.Generator, n: int = 4_000) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the layout of the yearly files of the EU Labour Force Survey."""
    of, line = homes(rng, n)
    frame = pd.DataFrame(
        {
            "REFYEAR": 2024,
            "QUARTER": rng.integers(1, 5, n),
            "REFWEEK": rng.integers(1, 53, n),
            "COUNTRY": "AT",
            "REGION_2D": np.array([11, 12, 13, 21, 22, 31, 32, 33, 34])[rng.integers(0, 9, of.max() + 1)[of]],
            "DEGURBA": rng.integers(1, 4, of.max() + 1)[of],
            "HHNUM": of + 100_001,
            "HHSEQNUM": line,
            "SEX": rng.integers(1, 3, n),
            "AGE": rng.integers(0, 95, n),
            "MARSTAT": rng.choice([1, 2, 3, 9], n),
            "NATIONAL": rng.choice([0, 1, 2, 3, 9], n),
            "COUNTRYB": rng.choice(["NAT", "EU", "OTH"], n),
            "HATLEV1D": rng.choice(["L", "M", "H"], n),
            "ILOSTAT": rng.integers(1, 5, n),
            "ISCO08_3D": rng.choice(ISCO_3, n),
            "NACE1D": rng.choice(list("ABCDEFGHIJ"), n),
            "FTPT": rng.choice([1, 2, 9], n),
            "TEMP": rng.choice([1, 2, 9], n),
            "HWUSUAL": np.where(rng.random(n) < 0.4, 99, rng.integers(1, 81, n)),
            "HWACTUAL": np.where(rng.random(n) < 0.4, 99, rng.integers(0, 81, n)),
            "INCDECIL": rng.choice([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 99], n),
            "COEFF": rng.uniform(0.05, 0.9, n).round(6),
        }
    )  # fmt: skip
    expert = {
        "REFYEAR": "nominal|other", "COUNTRY": "nominal|other", "REGION_2D": "region", "HHNUM": "household",
        "HHSEQNUM": "key|nominal", "AGE": "numeric", "REFWEEK": "nominal", "HWUSUAL": "numeric|left",
        "HWACTUAL": "numeric|left", "COEFF": "weight", "INCDECIL": "sensitive|nominal",
    }  # fmt: skip
    return frame, {name: expert.get(name, "nominal") for name in frame}


def ipums(rng: np.random.Generator, n: int = 4_000) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the layout of an extract of IPUMS USA."""
    of, line = homes(rng, n)
    county = np.array([1, 3, 13, 29, 37, 41, 59, 65, 71, 73, 85, 97, 111, 113])
    occupation = np.sort(rng.choice(np.arange(10, 9_760), 220, replace=False))
    birthplace = np.sort(rng.choice(np.arange(1, 950), 70, replace=False))
    frame = pd.DataFrame(
        {
            "YEAR": 2022,
            "SAMPLE": 202201,
            "SERIAL": of + 1,
            "CBSERIAL": (of * 13 + 2_022_000_000_123),
            "HHWT": rng.integers(20, 250, of.max() + 1)[of],
            "CLUSTER": 2_022_000_000_000 + of * 10 + 1,
            "STATEFIP": rng.choice([6, 12, 36, 48], of.max() + 1)[of],
            "COUNTYFIP": county[rng.integers(0, len(county), of.max() + 1)[of]],
            "GQ": rng.choice([1, 2, 3], of.max() + 1, p=[0.9, 0.05, 0.05])[of],
            "OWNERSHP": rng.integers(1, 3, of.max() + 1)[of],
            "PERNUM": line,
            "PERWT": rng.integers(20, 250, n),
            "SEX": rng.integers(1, 3, n),
            "AGE": rng.integers(0, 95, n),
            "MARST": rng.integers(1, 7, n),
            "RACE": rng.integers(1, 10, n),
            "BPL": rng.choice(birthplace, n),
            "EDUC": rng.integers(0, 12, n),
            "OCC": rng.choice(occupation, n),
            "EMPSTAT": rng.integers(0, 4, n),
            "UHRSWORK": np.where(rng.random(n) < 0.4, 0, rng.integers(1, 99, n)),
            "INCTOT": np.where(rng.random(n) < 0.2, 9_999_999, (rng.lognormal(10, 1, n) / 10).round() * 10),
            "INCWAGE": np.where(rng.random(n) < 0.2, 999_999, (rng.lognormal(10, 0.7, n) / 10).round() * 10),
            "HHINCOME": (rng.lognormal(11, 0.7, of.max() + 1)[of] / 10).round() * 10,
        }
    )
    expert = {
        "YEAR": "other|nominal", "SAMPLE": "other|nominal", "SERIAL": "household", "CBSERIAL": "key",
        "HHWT": "weight",
        "CLUSTER": "key", "STATEFIP": "region|nominal", "COUNTYFIP": "nominal|region",
        "PERNUM": "key|nominal",
        "PERWT": "weight", "AGE": "numeric", "UHRSWORK": "numeric", "INCTOT": "sensitive|numeric",
        "INCWAGE": "sensitive|numeric", "HHINCOME": "sensitive|numeric",
    }  # fmt: skip
    return frame, {name: expert.get(name, "nominal") for name in frame}


def rand_hie(rng: np.random.Generator, n: int = 4_000) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the layout of the RAND Health Insurance Experiment in Cameron and Trivedi (2005)."""
    people = n // 4
    of = np.repeat(np.arange(people), 4)
    year = np.tile(np.arange(1, 5), people)
    income = rng.lognormal(9, 0.6, people).round(2)[of]
    num = rng.integers(1, 13, people)[of]
    medical = amounts(rng, len(of), 0.75, 90.0)
    parts = {
        name: amounts(rng, len(of), share, typical)
        for name, share, typical in (("outpdol", 0.8, 60.0), ("drugdol", 0.6, 15.0), ("suppdol", 0.4, 10.0))
    }
    frame = pd.DataFrame(
        {
            "plan": rng.integers(1, 20, people)[of],
            "site": rng.integers(1, 7, people)[of],
            "coins": rng.choice([0, 25, 50, 95, 100], people)[of],
            "year": year,
            "zper": (np.sort(rng.choice(np.arange(125_000, 640_000), people, replace=False)))[of],
            "black": rng.integers(0, 2, people)[of],
            "income": income,
            "xage": (rng.uniform(0, 64, people)[of] + year).round(4),
            "female": rng.integers(0, 2, people)[of],
            "educdec": rng.integers(0, 24, people)[of],
            **parts,
            "inpdol": medical,
            "meddol": (parts["outpdol"] + parts["drugdol"] + parts["suppdol"] + medical).round(2),
            "mdvis": rng.poisson(2.9, len(of)),
            "num": num,
            "mhi": rng.uniform(20, 100, people)[of].round(1),
            "disea": rng.poisson(11, people)[of],
            "physlm": rng.integers(0, 2, people)[of],
            "lfam": np.log(num),
            "linc": np.log(income),
            "lnum": np.log(num),
            "hlthg": rng.integers(0, 2, people)[of],
        }
    )
    expert = {
        "zper": "unit", "income": "sensitive|numeric", "xage": "numeric", "educdec": "numeric|nominal",
        "outpdol": "sensitive|numeric", "drugdol": "sensitive|numeric", "suppdol": "sensitive|numeric",
        "inpdol": "sensitive|numeric", "meddol": "left|sensitive|numeric", "mdvis": "numeric|nominal",
        "mhi": "sensitive|numeric", "disea": "sensitive|numeric|nominal", "physlm": "sensitive",
        "lfam": "left", "linc": "left", "lnum": "left", "site": "nominal|region",
        "num": "nominal|numeric|left",
        "hlthg": "sensitive|nominal",
    }  # fmt: skip
    return frame, {name: expert.get(name, "nominal") for name in frame}


Maker = Callable[..., tuple[pd.DataFrame, dict[str, str]]]
"""Makes a file and the roles of an expert from a random generator."""

DEVELOPED: tuple[Maker, ...] = (
    eu_silc, ses, eu_lfs, ipums, rand_hie,
)  # fmt: skip


def layouts(makers: tuple[Maker, ...], seed: int = 7) -> list[Layout]:
    """Return the files of the layouts, which depend only on the seed."""
    made = []
    for number, make in enumerate(makers):
        frame, expert = make(np.random.default_rng([seed, number]))
        assert set(frame) == set(expert), make.__name__
        made.append(Layout(make.__name__, frame, expert))
    return made
