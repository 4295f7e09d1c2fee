"""Variables of synthetic persons, drawn conditionally on their household and on other variables.

Every draw is vectorised over the persons of a chunk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

REGIONS = (
    "Harbour",
    "Old Town",
    "Northfield",
    "Riverside",
    "Hillcrest",
    "Westgate",
    "Millbrook",
    "Southmoor",
)
SEXES = ("female", "male")
MARITAL_STATUSES = ("never married", "married", "divorced", "widowed")
CITIZENSHIPS = ("national", "neighbouring country", "other country")
EDUCATIONS = ("in school", "primary", "lower secondary", "upper secondary", "bachelor", "master", "doctorate")
WORKING_STATUSES = ("child", "student", "employed", "self-employed", "unemployed", "homemaker", "retired")
OCCUPATIONS = (
    "none",
    "manager",
    "professional",
    "technician",
    "clerk",
    "service and sales",
    "craft",
    "machine operator",
    "elementary",
)
HOUSEHOLD_TYPES = ("single", "couple", "couple with children", "lone parent")
DIAGNOSES = (
    "none",
    "respiratory",
    "circulatory",
    "musculoskeletal",
    "mental",
    "digestive",
    "neoplasm",
    "injury",
    "endocrine",
)
GIVEN_NAMES = tuple(
    start + end
    for start in ("Al", "Be", "Cor", "Da", "El", "Fi", "Jo", "Ma")
    for end in ("ba", "dan", "la", "na", "ric", "sa")
)
FAMILY_NAMES = tuple(
    start + end
    for start in ("Ash", "Birch", "Brook", "Fair", "Green", "Hazel", "Stone", "Water", "Wood")
    for end in ("by", "dale", "field", "ford", "ham", "ley", "ton", "well", "worth")
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Households:
    """Households of a chunk, with each person's household and position in it."""

    household_of: Ints
    position: Ints
    size: Ints
    couple: Mask
    region: Ints
    head_age: Floats
    wealth: Floats
    start: Ints


def persons(rng: np.random.Generator, home: Households, first: int) -> dict[str, Any]:
    """Draw all variables of the persons of these households; identifiers begin after `first`."""
    n = len(home.household_of)
    partner = (home.position == 1) & home.couple[home.household_of]
    in_couple = home.couple[home.household_of] & (home.position <= 1)
    age = _ages(rng, home, partner)
    sex = rng.integers(0, 2, n)
    sex = np.where(partner & (rng.random(n) < 0.97), 1 - sex[home.start[home.household_of]], sex)
    wealth = home.wealth[home.household_of]
    education = _educations(rng, age, wealth)
    status = _working_statuses(rng, age, sex, education)
    working = np.isin(status, [2, 3])
    occupation = _occupations(rng, education, working)
    hours = _hours(rng, sex, working)
    income = _incomes(rng, age, education, status, occupation, hours, wealth)
    house_type = np.select([home.size == 1, ~home.couple, home.size == 2], [0, 3, 1], default=2)[
        home.household_of
    ]
    return {
        "person_id": first + rng.permutation(n) + 1,
        "name": _names(rng, home),
        "household": (first + home.household_of + 1),
        "region": _labels(home.region[home.household_of], REGIONS),
        "sex": _labels(sex, SEXES),
        "age": age.astype(np.int16),
        "age_group": _labels(age // 5, tuple(f"{low}-{low + 4}" for low in range(0, 100, 5))),
        "marital_status": _labels(_marital_statuses(rng, age, in_couple), MARITAL_STATUSES),
        "citizenship": _labels(_citizenships(rng, home), CITIZENSHIPS),
        "education": _labels(education, EDUCATIONS),
        "working_status": _labels(status, WORKING_STATUSES),
        "occupation": _labels(occupation, OCCUPATIONS),
        "household_type": _labels(house_type, HOUSEHOLD_TYPES),
        "income": income.astype(np.int32),
        "hours": hours.astype(np.int16),
        "diagnosis": _labels(_diagnoses(rng, age, sex), DIAGNOSES),
        "weight": _weights(rng, home),
        **_economy(rng, home, age, working, income),
    }


def _ages(rng: np.random.Generator, home: Households, partner: Mask) -> Ints:
    head = home.head_age[home.household_of]
    mate = np.clip(head + rng.normal(-1, 4, len(head)), 18, 97)
    child = np.clip(head - rng.uniform(20, 38, len(head)), 0, 70)
    return np.floor(np.where(home.position == 0, head, np.where(partner, mate, child))).astype(np.int64)


def _marital_statuses(rng: np.random.Generator, age: Ints, in_couple: Mask) -> Ints:
    draw = rng.random(len(age))
    widowed = 0.7 / (1 + np.exp(-(age - 72) / 7))
    divorced = np.where(age > 28, 0.22, 0.01)
    alone = np.select([draw < widowed, draw < widowed + divorced], [3, 2], default=0)
    together = np.select([draw < 0.8, draw < 0.86], [1, 2], default=0)
    return np.where(age < 18, 0, np.where(in_couple, together, alone))


def _citizenships(rng: np.random.Generator, home: Households) -> Ints:
    foreign = 0.06 + 0.03 * (home.region % 3)
    draw = rng.random(len(home.size))
    house = np.select([draw < foreign / 2, draw < foreign], [2, 1], default=0)[home.household_of]
    of_person = rng.choice(3, p=[0.8, 0.12, 0.08], size=len(home.household_of))
    return np.where(rng.random(len(home.household_of)) < 0.06, of_person, house)


def _educations(rng: np.random.Generator, age: Ints, wealth: Floats) -> Ints:
    latent = 0.45 * wealth + 0.9 * rng.normal(size=len(age)) - np.where(age > 64, 0.5, 0.0)
    level = 1 + np.searchsorted([-1.6, -0.8, 0.45, 1.05, 2.1], latent)
    ceiling = np.select([age < 16, age < 19, age < 22, age < 25, age < 28], [0, 2, 3, 4, 5], default=6)
    return np.minimum(level, ceiling)


def _working_statuses(rng: np.random.Generator, age: Ints, sex: Ints, education: Ints) -> Ints:
    grown = np.where(age >= 16, 0.0, -50.0)
    utilities = np.stack(
        [
            np.where(age < 16, 50.0, -50.0),
            grown + 3.5 - 0.45 * np.maximum(age - 17, 0),
            grown + 2.2 + 0.15 * education - 0.35 * np.maximum(age - 59, 0),
            grown + 0.1 + 0.02 * np.minimum(age, 55) - 0.2 * np.maximum(age - 63, 0),
            grown + 0.3 - 0.25 * education - 0.4 * np.maximum(age - 60, 0),
            grown - 0.2 - 1.2 * sex - 0.05 * np.maximum(age - 65, 0),
            grown - 1.0 + 0.55 * (age - 61),
        ]
    )
    return _drawn(rng, utilities)


def _occupations(rng: np.random.Generator, education: Ints, working: Mask) -> Ints:
    skill = np.array([2.2, 2.6, 1.4, 0.5, -0.4, -0.3, -0.7, -1.4])[:, None]
    size = np.array([-1.0, -0.2, 0.3, 0.2, 0.5, 0.2, -0.3, 0.0])[:, None]
    return np.where(working, 1 + _drawn(rng, size + 0.55 * skill * (education - 3)), 0)


def _hours(rng: np.random.Generator, sex: Ints, working: Mask) -> Ints:
    n = len(sex)
    part_time = rng.random(n) < np.where(sex == 0, 0.42, 0.12)
    usual = np.where(
        part_time, rng.choice([10, 16, 20, 24, 30], size=n), rng.choice([35, 38, 40, 45], size=n)
    )
    return np.where(working, np.clip(usual + np.rint(rng.laplace(0, 1.5, n)), 1, 80), 0).astype(np.int64)


def _incomes(
    rng: np.random.Generator,
    age: Ints,
    education: Ints,
    status: Ints,
    occupation: Ints,
    hours: Ints,
    wealth: Floats,
) -> Floats:
    n = len(age)
    premium = np.array([0, 0.45, 0.3, 0.15, 0, -0.15, 0, -0.05, -0.25])[occupation]
    career = 0.03 * np.minimum(age - 18, 25)
    wage = 9.4 + 0.1 * education + premium + career + 0.8 * np.log(np.maximum(hours, 1) / 38) + 0.1 * wealth
    pension = 9.3 + 0.12 * education + 0.15 * wealth
    level = np.select(
        [np.isin(status, [2, 3]), status == 6, status == 4, status == 1],
        [wage, pension, 9.0, 8.3],
        default=7.6,
    )
    spread = np.select([status == 3, status == 2], [0.6, 0.28], default=0.3)
    without = (status == 0) | ((status == 5) & (rng.random(n) < 0.6))
    return np.where(without, 0, np.rint(np.exp(level + spread * rng.normal(size=n)) / 10) * 10)


def _diagnoses(rng: np.random.Generator, age: Ints, sex: Ints) -> Ints:
    old = (age - 45) / 25
    rates = [
        1.6 - 0.8 * old,
        0.0 - 0.2 * old,
        -0.8 + 1.2 * old,
        -0.3 + 0.7 * old,
        -0.6 - 0.1 * old - 0.3 * sex,
        -0.8 + 0.2 * old,
        -1.9 + 0.9 * old,
        -0.7 - 0.3 * old + 0.4 * sex,
        -1.3 + 0.7 * old,
    ]
    return _drawn(rng, np.stack([np.broadcast_to(rate, age.shape) for rate in rates]))


def _economy(
    rng: np.random.Generator, home: Households, age: Ints, working: Mask, income: Floats
) -> dict[str, Any]:
    """Draw the amounts of the numeric demo, both of households (rent, floor space) and of persons."""
    n, wealth = len(age), home.wealth
    space = np.exp(3.9 + 0.35 * np.log(home.size) + 0.25 * wealth + 0.2 * rng.normal(size=len(wealth)))
    rent = space * np.exp(2.1 + 0.05 * (home.region % 4) + 0.1 * wealth + 0.15 * rng.normal(size=len(wealth)))
    tax = np.maximum(0.28 * (income - 9_000), 0) * np.exp(0.1 * rng.normal(size=n))
    savings = np.where(
        age < 16, 0, np.exp(7.0 + 0.03 * age + 0.6 * wealth[home.household_of] + 1.1 * rng.normal(size=n))
    )
    debt = np.where((age > 20) & (rng.random(n) < 0.45), np.exp(8.5 + 1.2 * rng.normal(size=n)), 0)
    tenure = np.minimum(rng.exponential(9, n), np.maximum(age - 16, 0))
    return {
        "tax": np.round(tax, 2),
        "savings": np.round(savings, 2),
        "debt": np.round(debt, 2),
        "rent": np.round(rent, 2)[home.household_of],
        "floor_space": np.round(space, 1)[home.household_of],
        "commute": np.where(working, np.rint(rng.gamma(2.2, 12, n)), 0).astype(np.int16),
        "years_in_job": np.where(working, np.round(tenure, 1), 0),
    }


def _weights(rng: np.random.Generator, home: Households) -> Floats:
    """Draw weights: design weight of the region times one of three nonresponse corrections.

    The weights have few distinct values, so that they identify nobody.
    """
    design = 8 + 1.5 * home.region[home.household_of]
    return np.round(design * rng.choice([0.9, 1.0, 1.2], size=len(home.household_of)), 2)


def _names(rng: np.random.Generator, home: Households) -> pa.Array:
    family = rng.integers(0, len(FAMILY_NAMES), len(home.size))[home.household_of]
    given = rng.integers(0, len(GIVEN_NAMES), len(home.household_of))
    full = tuple(f"{one} {other}" for one in GIVEN_NAMES for other in FAMILY_NAMES)
    return _labels(given * len(FAMILY_NAMES) + family, full)


def _drawn(rng: np.random.Generator, utilities: Floats) -> Ints:
    """Draw one category per person from a multinomial logit (rows are categories) by the Gumbel-max
    method.
    """
    return np.argmax(utilities + rng.gumbel(size=utilities.shape), axis=0)


def _labels(codes: Ints, names: tuple[str, ...]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(codes.astype(np.int32), pa.array(names)).cast(pa.string())
