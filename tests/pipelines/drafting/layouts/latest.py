"""Files in the layouts of five more kinds of statistics, written after the engine was corrected with
`further`.

Sources: American Time Use Survey 2022 of the BLS (respondents with minutes a day), Eurofarm of the Farm
Structure Survey (Regulation 2018/1091), National Inpatient Sample 2019 of HCUP, Public Use File of the tax
returns of the IRS, casualties of STATS19 (Department for Transport). `layouts` defines the roles.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from tests.pipelines.drafting.layouts.developed import amounts
from tests.pipelines.drafting.layouts.further import codes
from tests.pipelines.drafting.layouts.later import ages

Made = tuple[pd.DataFrame, dict[str, str]]


def _with_expert(columns: dict[str, object], expert: dict[str, str]) -> Made:
    frame = pd.DataFrame(columns)
    return frame, {name: expert.get(name, "nominal") for name in frame}


def time_use(rng: np.random.Generator, n: int = 3_000) -> Made:
    """Return respondents of a time use survey with their minutes by activity."""
    sleep = rng.normal(520, 90, n).round(-1).clip(0, 1_440).astype(int)
    work = np.where(rng.random(n) < 0.45, rng.normal(450, 100, n).round(-1).clip(10, 800), 0).astype(int)
    care = np.where(rng.random(n) < 0.3, rng.gamma(2, 45, n).round(-1), 0).astype(int)
    columns = {
        "TUCASEID": rng.permutation(n) + 20_220_101_220_001,
        "TULINENO": 1,
        "TUYEAR": 2022,
        "TUMONTH": rng.integers(1, 13, n),
        "TUDIARYDAY": rng.integers(1, 8, n),
        "GESTFIPS": rng.choice([1, 4, 6, 12, 13, 17, 26, 36, 39, 42, 48, 53], n),
        "TEAGE": 15 + (ages(rng, n) * 0.7).astype(int),
        "TESEX": rng.integers(1, 3, n),
        "PTDTRACE": codes(rng, n, 1, 2, 4, 3, 7),
        "PEEDUCA": rng.integers(31, 47, n),
        "TELFS": codes(rng, n, 1, 5, 4, 2, 3),
        "TRDTOCC1": rng.integers(1, 23, n),
        "TRCHILDNUM": codes(rng, n, 0, 1, 2, 3, 4, 5),
        "TRERNWA": np.where(rng.random(n) < 0.5, rng.lognormal(11.2, 0.6, n).round(), -1).astype(int),
        "t010101": sleep,
        "t050101": work,
        "t030101": care,
        "TUFNWGTP": rng.lognormal(15.5, 0.8, n).round(6),
    }
    minutes = dict.fromkeys(["t010101", "t050101", "t030101"], "numeric|sensitive")
    return _with_expert(
        columns,
        minutes
        | {
            "TUCASEID": "unit",
            "TULINENO": "other|nominal|left",
            "TUYEAR": "other|nominal",
            "GESTFIPS": "region|nominal",
            "TEAGE": "numeric",
            "PTDTRACE": "sensitive|nominal",
            "TRERNWA": "numeric|sensitive|left",
            "TUFNWGTP": "weight",
        },
    )


def farm_structure(rng: np.random.Generator, n: int = 3_000) -> Made:
    """Return holdings of a farm structure survey of one country."""
    arable, grass, permanent = (
        amounts(rng, n, 0.8, 12.0),
        amounts(rng, n, 0.5, 8.0),
        amounts(rng, n, 0.2, 2.0),
    )
    region = rng.choice(["PT11", "PT15", "PT16", "PT17", "PT18", "PT20", "PT30"], n)
    columns = {
        "COUNTRY": "PT",
        "YEAR": 2020,
        "FARMCODE": rng.permutation(n) + 1_000_001,
        "NUTS2": region,
        "NUTS3": [f"{each}{i}" for each, i in zip(region, rng.integers(1, 5, n), strict=True)],
        "LEGAL": codes(rng, n, 1, 2, 3),
        "HOLDER_SEX": rng.integers(1, 3, n),
        "MANAGER_AGE": rng.integers(19, 90, n),
        "TRAINING": codes(rng, n, 1, 2, 3),
        "FTYPE": codes(rng, n, 151, 163, 361, 370, 450, 460, 481, 484, 512, 610, 731, 831),
        "ORGANIC": codes(rng, n, 0, 1),
        "LFA": codes(rng, n, 1, 2, 3),
        "UAA_ARA": arable,
        "UAA_GRASS": grass,
        "UAA_PERM": permanent,
        "UAA": (arable + grass + permanent).round(2),
        "LSU": np.where(rng.random(n) < 0.4, 0, rng.lognormal(2, 1.2, n)).round(2),
        "AWU": rng.lognormal(0.1, 0.6, n).round(2),
        "SO_EUR": rng.lognormal(10, 1.3, n).round(),
        "EXTRA": rng.choice([1.0, 2.4, 3.75, 11.5], n),
    }
    areas = ["MANAGER_AGE", "UAA_ARA", "UAA_GRASS", "UAA_PERM", "LSU", "AWU", "SO_EUR"]
    return _with_expert(
        columns,
        dict.fromkeys(areas, "numeric|sensitive")
        | {
            "COUNTRY": "other|nominal",
            "YEAR": "other|nominal",
            "FARMCODE": "unit",
            "NUTS2": "region|nominal|left",
            "NUTS3": "region|nominal",
            "UAA": "numeric|left",
            "EXTRA": "weight|other",
        },
    )


def inpatients(rng: np.random.Generator, n: int = 3_000) -> Made:
    """Return hospital discharges of the National Inpatient Sample."""
    hospitals = 90
    of = rng.integers(0, hospitals, n)
    icd = ["I214", "J189", "A419", "O80", "Z3800", "F329", "N179", "I5023", "C509", "E119", "K3580", "M170"]
    drg = rng.choice([65, 190, 193, 291, 378, 470, 690, 765, 775, 795, 871, 885], n)
    stay = rng.geometric(0.22, n)
    columns = {
        "KEY_NIS": rng.permutation(n) + 10_000_101,
        "HOSP_NIS": (of + 50_001),
        "NIS_STRATUM": (1_000 + of % 18 * 11 + 1),
        "AGE": ages(rng, n),
        "FEMALE": rng.integers(0, 2, n),
        "RACE": codes(rng, n, 1, 2, 3, 4, 6, 5),
        "ZIPINC_QRTL": rng.integers(1, 5, n),
        "PL_NCHS": rng.integers(1, 7, n),
        "PAY1": codes(rng, n, 1, 3, 2, 4, 6, 5),
        "AMONTH": rng.integers(1, 13, n),
        "ELECTIVE": rng.integers(0, 2, n),
        "DIED": (rng.random(n) < 0.03).astype(int),
        "I10_DX1": rng.choice(icd, n),
        "I10_DX2": rng.choice(icd, n),
        "DRG": drg,
        "LOS": stay,
        "TOTCHG": (stay * rng.lognormal(8.9, 0.7, n)).round(),
        "HOSP_DIVISION": rng.integers(1, 10, hospitals)[of],
        "DISCWT": rng.choice([4.9999, 5.0001, 5.0007, 4.9992], 18)[of % 18],
    }
    return _with_expert(
        columns,
        {
            "KEY_NIS": "unit",
            "HOSP_NIS": "key",
            "NIS_STRATUM": "nominal|left|key",
            "AGE": "numeric",
            "RACE": "sensitive|nominal",
            "ZIPINC_QRTL": "sensitive|nominal",
            "DIED": "sensitive|nominal",
            "I10_DX1": "sensitive|nominal",
            "I10_DX2": "sensitive|nominal",
            "DRG": "sensitive|nominal",
            "LOS": "numeric|sensitive|nominal",
            "TOTCHG": "numeric|sensitive",
            "HOSP_DIVISION": "region|nominal",
            "DISCWT": "weight|other",
        },
    )


def tax_returns(rng: np.random.Generator, n: int = 3_000) -> Made:
    """Return tax returns by the line codes of the Public Use File."""
    wages, interest, dividends = (
        amounts(rng, n, 0.8, 45_000.0),
        amounts(rng, n, 0.4, 600.0),
        amounts(rng, n, 0.25, 1_800.0),
    )
    gains = amounts(rng, n, 0.2, 5_000.0) * rng.choice([1, -1], n, p=[0.8, 0.2])
    columns = {
        "RECID": rng.permutation(n) + 1,
        "FLPDYR": 2015,
        "STATE": rng.integers(1, 52, n),
        "MARS": codes(rng, n, 1, 2, 4, 3),
        "XTOT": codes(rng, n, 1, 2, 4, 3, 5),
        "AGERANGE": rng.integers(0, 7, n),
        "GENDER": rng.integers(1, 3, n),
        "EIC": codes(rng, n, 0, 1, 2, 3),
        "DSI": codes(rng, n, 0, 1),
        "E00200": wages.round(),
        "E00300": interest.round(),
        "E00600": dividends.round(),
        "E01000": gains.round(),
        "E00100": wages.round() + interest.round() + dividends.round() + gains.round(),
        "E19800": amounts(rng, n, 0.3, 900.0).round(),
        "E06500": (0.14 * wages).round(),
        "S006": rng.choice([154, 2_210, 10_387, 26_041], n) / 100,
    }
    money = ["E00200", "E00300", "E00600", "E01000", "E19800", "E06500"]
    return _with_expert(
        columns,
        dict.fromkeys(money, "numeric|sensitive|left")
        | {
            "RECID": "unit",
            "FLPDYR": "other|nominal",
            "STATE": "region|nominal",
            "E00100": "numeric|left|sensitive",
            "S006": "weight|other",
        },
    )


def casualties(rng: np.random.Generator, n: int = 3_000) -> Made:
    """Return casualties of road accidents; an accident has several."""
    accidents = int(n / 1.3)
    of = np.sort(rng.integers(0, accidents, n))
    first = np.r_[True, of[1:] != of[:-1]]
    place = np.maximum.accumulate(np.where(first, np.arange(n), 0))
    day = pd.Timestamp("2022-01-01") + pd.to_timedelta(rng.integers(0, 365, accidents), "D")
    age = ages(rng, n)
    columns = {
        "accident_index": [f"2022{i:09d}" for i in (rng.permutation(accidents) + 10_000)[of]],
        "casualty_reference": np.arange(n) - place + 1,
        "date": day[of].strftime("%d/%m/%Y"),
        "time": [
            f"{h:02d}:{m:02d}"
            for h, m in zip(
                rng.integers(0, 24, accidents)[of], 5 * rng.integers(0, 12, accidents)[of], strict=True
            )
        ],
        "longitude": rng.uniform(-5.5, 1.5, accidents)[of].round(6),
        "latitude": rng.uniform(50.1, 55.8, accidents)[of].round(6),
        "police_force": rng.choice([1, 4, 6, 20, 43, 46, 50, 97], accidents)[of],
        "speed_limit": rng.choice([20, 30, 40, 50, 60, 70], accidents)[of],
        "road_type": codes(rng, accidents, 6, 3, 1, 7, 2, 9)[of],
        "casualty_class": codes(rng, n, 1, 2, 3),
        "sex_of_casualty": rng.integers(1, 3, n),
        "age_of_casualty": age,
        "age_band_of_casualty": np.digitize(age, [6, 11, 16, 21, 26, 36, 46, 56, 66, 76]) + 1,
        "casualty_severity": codes(rng, n, 3, 2, 1),
        "casualty_type": codes(rng, n, 9, 0, 1, 3, 5, 11, 19, 90),
        "casualty_imd_decile": rng.integers(1, 11, n),
    }
    return _with_expert(
        columns,
        {
            "accident_index": "key|household|left",
            "casualty_reference": "left|nominal|key",
            "date": "left",
            "time": "left",
            "longitude": "left",
            "latitude": "left",
            "police_force": "region|nominal",
            "speed_limit": "nominal",
            "age_of_casualty": "numeric",
            "age_band_of_casualty": "left|nominal",
            "casualty_severity": "sensitive|nominal",
            "casualty_imd_decile": "sensitive|nominal",
        },
    )


LATEST: tuple[Callable[..., Made], ...] = (time_use, farm_structure, inpatients, tax_returns, casualties)
