"""Further files in the layouts of published codebooks, written after the role engine and not used to tune it.

`layouts` defines the expert roles.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from tests.pipelines.drafting.layouts.developed import amounts, holes, homes


def dhs(rng: np.random.Generator, n: int = 3_000) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the layout of the individual recode of the Demographic and Health Surveys."""
    cluster = np.sort(rng.integers(1, 151, n))
    household = rng.integers(1, 31, n)
    line = rng.integers(1, 6, n)
    region = rng.integers(1, 6, 151)[cluster]
    weight = rng.uniform(0.3, 2.5, 151)[cluster]
    frame = pd.DataFrame(
        {
            "caseid": [
                f"{c:>8}{h:>4}{i:>3}" for c, h, i in zip(cluster, household, np.arange(n), strict=True)
            ],
            "v001": cluster,
            "v002": household,
            "v003": line,
            "v005": (weight * 1e6).round().astype(int),
            "v006": rng.integers(1, 13, n),
            "v007": 2021,
            "v012": rng.integers(15, 50, n),
            "v013": 0,
            "v021": cluster,
            "v022": region * 2 + rng.integers(0, 2, 151)[cluster],
            "v024": region,
            "v025": rng.integers(1, 3, 151)[cluster],
            "v106": rng.integers(0, 4, n),
            "v130": rng.integers(1, 7, n),
            "v133": rng.integers(0, 20, n),
            "v190": rng.integers(1, 6, n),
            "v201": rng.poisson(2.5, n),
            "v312": rng.choice([0, 1, 3, 5, 11], n),
            "v437": holes(rng, rng.normal(580, 100, n).round(), rng.random(n) < 0.03),
            "v501": rng.integers(0, 6, n),
            "v717": rng.integers(0, 10, n),
            "v744a": rng.choice([0, 1, 8], n),
            "v781": rng.integers(0, 2, n),
        }
    )
    frame["v013"] = (frame["v012"] - 10) // 5
    expert = {
        "caseid": "unit", "v001": "key", "v002": "key", "v003": "key|nominal", "v005": "weight",
        "v007": "other|nominal", "v012": "numeric", "v013": "left|nominal", "v021": "key|left",
        "v024": "region", "v133": "numeric|nominal", "v201": "numeric|nominal", "v437": "numeric|sensitive",
        "v025": "nominal|region", "v744a": "sensitive|nominal", "v781": "sensitive|nominal",
    }  # fmt: skip
    return frame, {name: expert.get(name, "nominal") for name in frame}


def anes(rng: np.random.Generator, n: int = 2_500) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the layout of the ANES 2016 Time Series Study."""
    refused = rng.random(n) < 0.04
    thermometer = np.where(
        refused, -9, np.minimum(rng.integers(0, 11, n) * 10 + rng.integers(0, 2, n) * 5, 100)
    )
    frame = pd.DataFrame(
        {
            "V160001": np.arange(300_001, 300_001 + n),
            "V160101": rng.lognormal(-0.2, 0.6, n).round(4) + 0.01,
            "V160102": rng.lognormal(-0.2, 0.7, n).round(4) + 0.01,
            "V160201": rng.integers(1, 133, n),
            "V160202": rng.integers(1, 3, n),
            "V161003": rng.choice([-9, 1, 2, 3, 4, 5], n),
            "V161010d": rng.choice([1, 4, 6, 12, 13, 17, 36, 39, 42, 48], n),
            "V161158x": rng.choice([-8, 1, 2, 3, 4, 5, 6, 7], n),
            "V161086": thermometer,
            "V161244": rng.choice([-9, 1, 2, 3, 4, 5], n),
            "V161267": rng.integers(18, 91, n),
            "V161268": rng.integers(1, 7, n),
            "V161270": rng.choice([*range(1, 17), 90, 95], n),
            "V161310x": rng.integers(1, 7, n),
            "V161342": rng.choice([1, 2, 3], n),
            "V161361x": rng.choice([-9, *range(1, 29)], n),
        }
    )
    expert = {
        "V160001": "unit", "V160101": "weight", "V160102": "weight", "V160201": "nominal|left|key",
        "V161010d": "nominal|region", "V161086": "numeric|nominal|sensitive", "V161267": "numeric",
        "V161361x": "sensitive|nominal", "V161244": "sensitive|nominal", "V161158x": "sensitive|nominal",
    }  # fmt: skip
    return frame, {name: expert.get(name, "nominal") for name in frame}


def agriculture(rng: np.random.Generator, n: int = 3_000) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return a file of holdings by the items of the World Programme for the Census of Agriculture 2020."""
    arable = amounts(rng, n, 0.8, 6.0)
    permanent = amounts(rng, n, 0.3, 1.5)
    pasture = amounts(rng, n, 0.5, 4.0)
    municipality = np.sort(rng.choice(np.arange(1_001, 5_430), 110, replace=False))
    frame = pd.DataFrame(
        {
            "holding_id": rng.permutation(n) + 700_001,
            "province": (place := municipality[rng.integers(0, 110, n)]) // 1_000,
            "municipality": place,
            "legal_status": rng.choice([1, 2, 3, 9], n, p=[0.9, 0.05, 0.04, 0.01]),
            "holder_sex": rng.integers(1, 3, n),
            "holder_age": rng.integers(18, 90, n),
            "holder_education": rng.integers(0, 6, n),
            "household_size": rng.integers(1, 12, n),
            "main_crop": rng.choice(
                [111, 112, 113, 119, 121, 122, 211, 212, 214, 311, 322, 431, 441, 931], n
            ),
            "area_arable": arable,
            "area_permanent": permanent,
            "area_pasture": pasture,
            "area_total": (arable + permanent + pasture).round(2),
            "irrigated": rng.integers(0, 2, n),
            "cattle": np.where(rng.random(n) < 0.5, 0, rng.poisson(12, n) * rng.integers(1, 4, n)),
            "sheep": np.where(rng.random(n) < 0.7, 0, rng.poisson(40, n) * rng.integers(1, 4, n)),
            "poultry": np.where(rng.random(n) < 0.4, 0, rng.poisson(60, n) * rng.integers(1, 6, n)),
            "workers_permanent": rng.poisson(0.7, n),
            "tractors": rng.poisson(0.6, n),
            "expansion_factor": rng.choice([1.0, 2.5, 4.75, 10.333], n),
        }
    )
    expert = {
        "holding_id": "unit", "province": "region", "municipality": "nominal|region", "holder_age": "numeric",
        "household_size": "nominal|numeric", "area_arable": "numeric", "area_permanent": "numeric",
        "area_pasture": "numeric", "area_total": "numeric|left", "cattle": "numeric", "sheep": "numeric",
        "poultry": "numeric", "workers_permanent": "numeric|nominal", "tractors": "numeric|nominal",
        "expansion_factor": "weight",
    }  # fmt: skip
    return frame, {name: expert.get(name, "nominal") for name in frame}


def household_budget(rng: np.random.Generator, n: int = 2_500) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the layout of the household file of the EU Household Budget Survey."""
    food, housing, transport, other = (amounts(rng, n, share, 3_000.0) for share in (1.0, 1.0, 0.8, 0.95))
    frame = pd.DataFrame(
        {
            "COUNTRY": "SI",
            "YEAR": 2020,
            "HA04": rng.permutation(n) + 1,
            "HA08": rng.choice(["SI031", "SI032", "SI033", "SI034", "SI041", "SI042", "SI043"], n),
            "HA09": rng.integers(1, 4, n),
            "HA10": rng.uniform(80, 900, n).round(5),
            "HB05": rng.integers(1, 9, n),
            "HB074": rng.choice([1, 2, 3, 9], n),
            "HD03": rng.integers(1, 6, n),
            "HC24": rng.choice([1, 2, 3, 4, 5, 9], n),
            "HH095": rng.lognormal(10, 0.5, n).round(2),
            "EUR_HE01": food,
            "EUR_HE04": housing,
            "EUR_HE07": transport,
            "EUR_HE12": other,
            "EUR_HE00": (food + housing + transport + other).round(2),
        }
    )
    expert = {
        "COUNTRY": "other|nominal", "YEAR": "other|nominal", "HA04": "unit|household",
        "HA08": "region|nominal", "HA10": "weight", "HH095": "sensitive|numeric",
        "EUR_HE01": "numeric|sensitive",
        "EUR_HE04": "numeric|sensitive", "EUR_HE07": "numeric|sensitive", "EUR_HE12": "numeric|sensitive",
        "EUR_HE00": "left|numeric|sensitive",
    }  # fmt: skip
    return frame, {name: expert.get(name, "nominal") for name in frame}


def register_of_persons(rng: np.random.Generator, n: int = 3_000) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return a Norwegian register of persons in the layout of public synthetic registers."""
    of, _ = homes(rng, n)
    born = pd.Timestamp("1930-01-01") + pd.to_timedelta(rng.integers(0, 33_000, n), "D")
    municipality = np.sort(rng.choice(np.arange(301, 5_444), 180, replace=False))
    frame = pd.DataFrame(
        {
            "fnr": [f"{date:%d%m%y}{i + 10_000}" for date, i in zip(born, rng.permutation(n), strict=True)],
            "hushold_nr": of + 50_001,
            "kommune": municipality[rng.integers(0, 180, of.max() + 1)[of]],
            "kjonn": rng.integers(1, 3, n),
            "alder": 2024 - born.year,
            "fodselsdato": born.strftime("%Y-%m-%d"),
            "sivilstand": rng.integers(1, 6, n),
            "landbakgrunn": rng.choice(["NO", "NO", "NO", "SE", "PL", "SO", "IQ", "LT"], n),
            "utdanning": rng.integers(0, 9, n),
            "naring": rng.choice(["01.110", "10.200", "41.200", "47.110", "56.101", "62.010", "86.101"], n),
            "inntekt": (rng.lognormal(12.8, 0.5, n) / 1_000).round() * 1_000,
            "formue": (rng.lognormal(13, 1.2, n) / 1_000).round() * 1_000,
        }
    )  # fmt: skip
    expert = {
        "fnr": "unit", "hushold_nr": "household", "kommune": "region|nominal", "alder": "numeric",
        "fodselsdato": "left", "inntekt": "numeric|sensitive", "formue": "numeric|sensitive",
        "landbakgrunn": "nominal|sensitive",
    }  # fmt: skip
    return frame, {name: expert.get(name, "nominal") for name in frame}


def business_panel(rng: np.random.Generator, n: int = 3_000) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return a panel of enterprises in the style of a Structural Business Survey."""
    firms, years = n // 5, 5
    of = np.repeat(np.arange(firms), years)
    persons = rng.lognormal(2.5, 1.0, firms).round().clip(1)[of] + rng.integers(0, 4, len(of))
    turnover = (persons * rng.lognormal(4.5, 0.5, len(of))).round(1)
    wages = (persons * rng.lognormal(3.4, 0.2, len(of))).round(1)
    nace = np.array(
        [1011, 1013, 1071, 1413, 1610, 2511, 2562, 2899, 3109, 4120, 4321, 4511, 4711, 4941, 5610, 6201]
    )
    frame = pd.DataFrame(
        {
            "ent_id": (rng.permutation(firms) + 30_001)[of],
            "ref_year": np.tile(np.arange(2018, 2023), firms),
            "nace4": nace[rng.integers(0, len(nace), firms)[of]],
            "nuts2": rng.choice(["AT11", "AT12", "AT13", "AT21", "AT22"], firms)[of],
            "legal_form": rng.choice(["10", "20", "31", "40"], firms)[of],
            "size_class": np.digitize(persons, [10, 20, 50, 250]) + 1,
            "persons_employed": persons.astype(int),
            "turnover": turnover,
            "wages": wages,
            "wage_per_head": wages / persons,
            "investment": amounts(rng, len(of), 0.6, 40.0),
            "grossing_factor": rng.uniform(1, 12, firms).round(6)[of],
        }
    )  # fmt: skip
    expert = {
        "ent_id": "unit", "ref_year": "nominal|other", "nuts2": "region|nominal",
        "size_class": "nominal|left",
        "persons_employed": "numeric", "turnover": "numeric|sensitive", "wages": "numeric|sensitive",
        "wage_per_head": "left|sensitive", "investment": "numeric|sensitive", "grossing_factor": "weight",
    }  # fmt: skip
    return frame, {name: expert.get(name, "nominal") for name in frame}


def _real(name: str, expert: dict[str, str]) -> Callable[..., tuple[pd.DataFrame, dict[str, str]]]:
    def make(rng: np.random.Generator) -> tuple[pd.DataFrame, dict[str, str]]:
        import statsmodels.api

        return getattr(statsmodels.api.datasets, name).load_pandas().data, expert

    make.__name__ = f"statsmodels_{name}"
    return make


REAL = (
    _real("randhie", {
        "mdvis": "numeric|nominal|sensitive", "lncoins": "numeric|nominal", "idp": "nominal",
        "lpi": "numeric|sensitive", "fmde": "numeric|sensitive|nominal",
        "physlm": "sensitive|nominal|numeric",
        "disea": "numeric|sensitive|nominal", "hlthg": "sensitive|nominal", "hlthf": "sensitive|nominal",
        "hlthp": "sensitive|nominal",
    }),
    _real("anes96", {
        "popul": "numeric|sensitive|nominal", "TVnews": "nominal", "selfLR": "sensitive|nominal",
        "ClinLR": "nominal", "DoleLR": "nominal", "PID": "sensitive|nominal", "age": "numeric",
        "educ": "nominal", "income": "sensitive|nominal|numeric", "vote": "sensitive|nominal",
        "logpopul": "left",
    }),
    _real("fair", {
        "rate_marriage": "nominal|sensitive", "age": "numeric|nominal", "yrs_married": "numeric|nominal",
        "children": "numeric|nominal", "religious": "sensitive|nominal", "educ": "nominal|numeric",
        "occupation": "nominal", "occupation_husb": "nominal", "affairs": "sensitive",
    }),
    _real("modechoice", {
        "individual": "unit|key", "mode": "nominal|left", "choice": "nominal", "ttme": "numeric",
        "invc": "numeric",
        "invt": "numeric", "gc": "numeric", "hinc": "sensitive|numeric", "psize": "nominal",
    }),
    _real("grunfeld", {
        "invest": "numeric", "value": "numeric", "capital": "numeric", "firm": "key|unit|nominal",
        "year": "nominal|other",
    }),
    _real("ccard", {
        "AVGEXP": "numeric|sensitive", "AGE": "numeric", "INCOME": "numeric|sensitive", "INCOMESQ": "left",
        "OWNRENT": "nominal",
    }),
)  # fmt: skip
"""Real files that statsmodels, which is in the test environment, brings."""

HELD_OUT: tuple[Callable[..., tuple[pd.DataFrame, dict[str, str]]], ...] = (
    dhs, anes, agriculture, household_budget, register_of_persons, business_panel, *REAL,
)  # fmt: skip
