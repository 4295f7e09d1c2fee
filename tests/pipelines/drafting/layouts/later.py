"""Files in the layouts of further codebooks and languages, written after a correction of the engine with
`held_out`.

Sources: European Social Survey 10, OECD PISA 2022, SOEP-Core v38, NHANES 2017-2018, European Health Interview
Survey 3, PNAD Contínua of IBGE, Living Standards Measurement Study (Tanzania, wave 4), Recensement agricole
2020 of Agreste, Landspatientregisteret, Encuesta Estructural de Empresas of INE. `layouts` defines the
expert roles.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from tests.pipelines.drafting.layouts.developed import ISCO_2, ISCO_3, amounts, holes, homes

Made = tuple[pd.DataFrame, dict[str, str]]


def _with_expert(columns: dict[str, object], expert: dict[str, str]) -> Made:
    frame = pd.DataFrame(columns)
    return frame, {name: expert.get(name, "nominal") for name in frame}


def ages(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return ages of a population with few old persons."""
    return (100 * rng.beta(1.1, 1.8, n)).astype(int)


def ess(rng: np.random.Generator, n: int = 3_000) -> Made:
    """Return the layout of the European Social Survey, one country."""
    weight = rng.lognormal(-0.1, 0.3, n)
    born = rng.integers(1932, 2008, n)
    hours = holes(rng, np.round(rng.normal(38, 9, n).clip(1, 90)), rng.random(n) < 0.1)
    columns = {
        "essround": 10, "idno": rng.permutation(n) + 10_013, "cntry": "SI",
        "dweight": weight.round(8), "pspwght": (weight * rng.uniform(0.6, 1.6, n)).round(8),
        "pweight": 0.2817, "gndr": rng.integers(1, 3, n), "agea": 2022 - born, "yrbrn": born,
        "eisced": rng.integers(1, 8, n), "isco08": rng.choice(ISCO_3, n) * 10,
        "nacer2": rng.integers(1, 97, n),
        "hhmmb": rng.integers(1, 8, n), "domicil": rng.integers(1, 6, n), "region": rng.integers(1, 13, n),
        "rlgdnm": rng.choice([1, 2, 3, 4, 6, 8, 66], n), "vote": rng.integers(1, 4, n),
        "hinctnta": rng.integers(1, 11, n), "health": rng.integers(1, 6, n), "happy": rng.integers(0, 11, n),
        "wkhtot": hours, "marsts": rng.integers(1, 7, n),
    }  # fmt: skip
    return _with_expert(columns, {
        "idno": "unit", "essround": "other|nominal", "cntry": "other|nominal", "dweight": "weight",
        "pspwght": "weight", "pweight": "weight|other|nominal", "agea": "numeric|left",
        "yrbrn": "numeric|nominal|left",
        "region": "region|nominal", "rlgdnm": "sensitive|nominal", "vote": "sensitive|nominal",
        "hinctnta": "sensitive|nominal", "health": "sensitive|nominal", "wkhtot": "numeric",
    })  # fmt: skip


def pisa(rng: np.random.Generator, n: int = 3_000) -> Made:
    """Return the layout of the student file of PISA."""
    schools = 120
    of = np.sort(rng.integers(0, schools, n))
    score = rng.normal(480, 90, n)
    columns = {
        "CNT": "AUT", "CNTSCHID": of + 4_000_001, "CNTSTUID": rng.permutation(n) + 4_000_500,
        "STRATUM": np.array([f"AUT{i:02}" for i in range(1, 19)])[rng.integers(0, 18, schools)[of]],
        "ST001D01T": rng.integers(8, 12, n), "ST004D01T": rng.integers(1, 3, n),
        "AGE": (15.25 + rng.integers(0, 13, n) / 12).round(2), "IMMIG": rng.integers(1, 4, n),
        "HISCED": rng.integers(1, 10, n), "LANGN": rng.choice([148, 264, 316, 344, 495, 540, 600, 865], n),
        "ESCS": rng.normal(0, 1, n).round(4), "BELONG": rng.normal(0, 1, n).round(4),
        "PV1MATH": score.round(3), "PV2MATH": (score + rng.normal(0, 30, n)).round(3),
        "PV1READ": (score + rng.normal(0, 50, n)).round(3),
        "W_FSTUWT": (rng.uniform(3, 30, schools)[of] * rng.uniform(0.9, 1.1, n)).round(5),
        "SENWT": rng.uniform(0.2, 1.9, schools)[of].round(5),
    }  # fmt: skip
    return _with_expert(columns, {
        "CNT": "other|nominal", "CNTSCHID": "key", "CNTSTUID": "unit", "AGE": "numeric|nominal",
        "ESCS": "numeric|sensitive", "BELONG": "numeric|sensitive", "PV1MATH": "numeric|sensitive",
        "PV2MATH": "numeric|sensitive", "PV1READ": "numeric|sensitive", "W_FSTUWT": "weight",
        "SENWT": "weight",
    })  # fmt: skip


def soep(rng: np.random.Generator, n: int = 3_000) -> Made:
    """Return the layout of the personal file of the Socio-Economic Panel, four waves."""
    people = n // 4
    home, _ = homes(rng, people)
    of, year = np.repeat(np.arange(people), 4), np.tile(np.arange(2018, 2022), people)
    m = len(of)
    born = rng.integers(1930, 2004, people)
    pay = np.where(rng.random(m) < 0.4, -2, np.round(rng.lognormal(7.5, 0.5, m), -1))
    columns = {
        "pid": of * 100 + 601, "hid": home[of] * 10 + 60_011, "syear": year,
        "sex": rng.integers(1, 3, people)[of], "gebjahr": born[of], "bula": rng.integers(1, 17, people)[of],
        "pgfamstd": rng.integers(1, 7, m),
        "pgstib": rng.choice([10, 11, 12, 120, 210, 240, 320, 421, 522], m),
        "pgisco08": rng.choice(ISCO_3, m) * 10, "pgcasmin": rng.integers(0, 10, people)[of],
        "pgnation": rng.choice([1, 2, 4, 5, 6, 21], people, p=[0.85, 0.05, 0.03, 0.03, 0.02, 0.02])[of],
        "pglabnet": pay, "plh0182": rng.integers(0, 11, m), "ple0008": rng.integers(1, 6, m),
        "phrf": rng.lognormal(7.5, 0.9, m).round(3),
    }  # fmt: skip
    return _with_expert(columns, {
        "pid": "unit", "hid": "household|key", "syear": "nominal|other", "gebjahr": "numeric|nominal",
        "bula": "region|nominal", "pglabnet": "sensitive|numeric|left", "phrf": "weight",
        "ple0008": "sensitive|nominal", "plh0182": "sensitive|nominal",
    })  # fmt: skip


def nhanes(rng: np.random.Generator, n: int = 3_000) -> Made:
    """Return the layout of the demographic and examination files of NHANES."""
    age = ages(rng, n).clip(0, 80)
    height, weight = rng.normal(166, 11, n).round(1), rng.normal(80, 20, n).clip(20).round(1)
    interview = rng.uniform(3_000, 400_000, n)
    columns = {
        "SEQN": np.arange(n) + 93_703, "RIAGENDR": rng.integers(1, 3, n), "RIDAGEYR": age,
        "RIDRETH3": rng.choice([1, 2, 3, 4, 6, 7], n), "DMDEDUC2": rng.choice([1, 2, 3, 4, 5, 9], n),
        "DMDMARTL": rng.choice([1, 2, 3, 4, 5, 6, 77], n),
        "DMDBORN4": rng.choice([1, 2, 77], n, p=[0.8, 0.19, 0.01]),
        "INDFMPIR": rng.uniform(0, 5, n).round(2), "BMXWT": weight, "BMXHT": height,
        "BMXBMI": (weight / (height / 100) ** 2).round(1), "DIQ010": rng.choice([1, 2, 3, 9], n),
        "LBXGH": rng.lognormal(1.7, 0.15, n).round(1), "SDMVPSU": rng.integers(1, 3, n),
        "SDMVSTRA": rng.integers(134, 149, n), "WTINT2YR": interview.round(6),
        "WTMEC2YR": (interview * rng.uniform(1.0, 1.1, n)).round(6),
    }  # fmt: skip
    return _with_expert(columns, {
        "SEQN": "unit", "RIDAGEYR": "numeric", "INDFMPIR": "numeric|sensitive", "BMXWT": "numeric|sensitive",
        "BMXHT": "numeric|sensitive", "BMXBMI": "numeric|sensitive|left", "DIQ010": "sensitive|nominal",
        "LBXGH": "numeric|sensitive", "WTINT2YR": "weight", "WTMEC2YR": "weight", "SDMVPSU": "nominal|key",
        "SDMVSTRA": "nominal|key",
    })  # fmt: skip


def ehis(rng: np.random.Generator, n: int = 3_000) -> Made:
    """Return the layout of the European Health Interview Survey."""
    of, _ = homes(rng, n)
    columns = {
        "PID": rng.permutation(n) + 500_001, "HHID": of + 70_001, "REFYEAR": 2019,
        "WGT": rng.uniform(300, 2_500, n).round(4),
        "REGION": rng.choice(["PT11", "PT15", "PT16", "PT17", "PT18", "PT20", "PT30"], n),
        "SEX": rng.integers(1, 3, n), "AGE": rng.integers(4, 19, n),
        "BIRTHPLACE": rng.choice([10, 21, 22, -1], n),
        "HATLEVEL": rng.integers(0, 9, n), "MAINSTAT": rng.choice([10, 20, 31, 32, 33, 35], n),
        "JOBISCO": rng.choice([*ISCO_2, -2], n), "HS1": rng.integers(1, 6, n), "HS2": rng.integers(1, 3, n),
        "CD1A": rng.choice([1, 2, -1], n), "CD1O": rng.choice([1, 2, -1], n), "MH1A": rng.integers(1, 5, n),
        "BM1": holes(rng, rng.normal(168, 9, n).round(), rng.random(n) < 0.02),
        "BM2": holes(rng, rng.normal(74, 14, n).round(1), rng.random(n) < 0.02),
        "SK1": rng.integers(1, 4, n), "AL1": rng.integers(1, 10, n), "HHINCOME": rng.integers(1, 6, n),
    }  # fmt: skip
    health = dict.fromkeys(
        ["HS1", "HS2", "CD1A", "CD1O", "MH1A", "SK1", "AL1", "HHINCOME"], "sensitive|nominal"
    )
    return _with_expert(columns, {
        "PID": "unit", "HHID": "household", "REFYEAR": "other|nominal", "WGT": "weight", "REGION": "region",
        "AGE": "nominal|numeric", "BM1": "numeric|sensitive", "BM2": "numeric|sensitive", **health,
    })  # fmt: skip


def pnad(rng: np.random.Generator, n: int = 3_000) -> Made:
    """Return the layout of the quarterly household survey of Brazil (PNAD Contínua)."""
    of, line = homes(rng, n)
    upa = np.sort(rng.integers(0, 150, of.max() + 1))
    state = np.array([11, 13, 23, 29, 31, 33, 35, 43, 53])[rng.integers(0, 9, 150)]
    pay = holes(rng, np.round(rng.lognormal(7.4, 0.7, n), 0), rng.random(n) < 0.45)
    columns = {
        "Ano": 2023, "Trimestre": 2, "UF": state[upa][of],
        "UPA": (state[upa] * 10_000_000 + 1_234 + upa * 37)[of],
        "Estrato": (state[upa] * 100_000 + 10_011)[of],
        "V1008": rng.integers(1, 15, of.max() + 1)[of], "V1022": rng.integers(1, 3, 150)[upa][of],
        "V1028": (rng.uniform(80, 900, 150)[upa][of]).round(8), "V2003": line, "V2005": np.minimum(line, 19),
        "V2007": rng.integers(1, 3, n), "V2009": ages(rng, n), "V2010": rng.choice([1, 2, 3, 4, 5, 9], n),
        "VD3004": rng.integers(1, 8, n), "VD4002": rng.integers(1, 3, n), "VD4019": pay,
        "VD4031": holes(rng, np.round(rng.normal(39, 9, n).clip(1)), np.isnan(pay)),
    }  # fmt: skip
    return _with_expert(columns, {
        "Ano": "other|nominal", "Trimestre": "other|nominal", "UF": "region|nominal", "UPA": "key",
        "Estrato": "nominal|key|left",
        "V1008": "key|nominal", "V1028": "weight", "V2003": "key|nominal|left", "V2009": "numeric",
        "VD4019": "sensitive|numeric|left", "VD4031": "numeric|left", "V2005": "nominal|left|key",
    })  # fmt: skip


def lsms(rng: np.random.Generator, n: int = 3_000) -> Made:
    """Return the layout of a consumption file of the Living Standards Measurement Study with its persons."""
    of, line = homes(rng, n, 8)
    size = np.bincount(of)[of]
    area = np.sort(rng.integers(0, 120, of.max() + 1))
    food = amounts(rng, of.max() + 1, 1.0, 2_000_000.0)[of]
    rest = amounts(rng, of.max() + 1, 1.0, 900_000.0)[of]
    columns = {
        "y4_hhid": [f"{1_000 + area[h]}-{h + 1:04}" for h in of], "indidy4": line,
        "clusterid": (area + 201)[of], "strataid": rng.integers(1, 9, 120)[area][of],
        "region": rng.integers(1, 27, 120)[area][of], "urban": rng.integers(1, 3, 120)[area][of],
        "y4_weights": rng.uniform(200, 6_000, 120)[area][of].round(4), "hhsize": size,
        "hh_b02": rng.integers(1, 3, n), "hh_b04": ages(rng, n), "hh_b05": np.minimum(line, 6),
        "hh_c07": rng.choice([1, 2, 11, 12, 17, 18, 21, 24, 31, 41], n), "literacy": rng.integers(1, 6, n),
        "expm_food": food, "expm_nonfood": rest, "expm_total": (food + rest).round(2),
    }  # fmt: skip
    return _with_expert(columns, {
        "y4_hhid": "household", "indidy4": "key|nominal", "clusterid": "key|nominal",
        "strataid": "nominal|key",
        "region": "region|nominal", "urban": "nominal|region", "y4_weights": "weight",
        "hhsize": "nominal|numeric",
        "hh_b04": "numeric", "hh_b05": "nominal|left|key", "expm_food": "numeric|sensitive",
        "expm_nonfood": "numeric|sensitive",
        "expm_total": "left|numeric|sensitive",
    })  # fmt: skip


def recensement_agricole(rng: np.random.Generator, n: int = 3_000) -> Made:
    """Return a French agricultural census in the layout of Agreste, with semicolons as delimiters."""
    crops, grass = amounts(rng, n, 0.9, 30.0), amounts(rng, n, 0.6, 15.0)
    department = np.array([14, 22, 29, 35, 44, 49, 50, 53, 56, 61, 72, 85])[rng.integers(0, 12, n)]
    columns = {
        "siret": rng.choice(np.arange(30_000_000_000_018, 90_000_000_000_018, 20_000_017), n, replace=False),
        "dep": department,
        "commune": department * 1_000 + rng.choice([3, 11, 18, 27, 40, 56, 61, 88, 102, 119], n),
        "statut_juridique": rng.choice([1, 2, 3, 9], n),
        "otex": rng.choice([1516, 2829, 3500, 4500, 4600, 4700, 4813, 5100, 6184], n),
        "sexe_exploitant": rng.integers(1, 3, n), "age_exploitant": rng.integers(19, 85, n),
        "formation": rng.integers(0, 7, n), "bio": rng.integers(0, 2, n), "sau_cultures": crops,
        "sau_herbe": grass,
        "sau_totale": (crops + grass).round(2),
        "vaches": np.where(rng.random(n) < 0.5, 0, rng.poisson(55, n)),
        "porcins": np.where(rng.random(n) < 0.9, 0, rng.poisson(900, n)),
        "uta": rng.lognormal(0.2, 0.5, n).round(2),
        "pbs": rng.lognormal(11, 1.1, n).round(0), "poids": rng.choice([1.0, 1.25, 3.4, 8.75], n),
    }  # fmt: skip
    number = dict.fromkeys(
        ["age_exploitant", "sau_cultures", "sau_herbe", "vaches", "porcins", "uta", "pbs"],
        "numeric|sensitive",
    )
    return _with_expert(columns, {
        "siret": "unit", "dep": "region|nominal", "commune": "nominal|region",
        "sau_totale": "left|numeric|sensitive",
        "poids": "weight", **number,
    })  # fmt: skip


def patient_register(rng: np.random.Generator, n: int = 3_000) -> Made:
    """Return a Danish register of hospital stays."""
    people = n // 2
    of = np.sort(rng.integers(0, people, n))
    start = pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 700, n), "D")
    days = rng.geometric(0.25, n) - 1
    columns = {
        "pnr": [f"{v:010d}" for v in (rng.permutation(people) * 4_099 + 101_500_001)[of]],
        "recnum": rng.permutation(n) + 8_000_001, "d_inddto": start.strftime("%Y-%m-%d"),
        "d_uddto": (start + pd.to_timedelta(days, "D")).strftime("%Y-%m-%d"), "v_sengdage": days,
        "c_sgh": rng.choice([1301, 1309, 1330, 1401, 1516, 2000, 3800, 4202, 5501, 6007, 7005, 8001], n),
        "c_adiag": rng.choice(["DI219", "DJ189", "DS720", "DC509", "DO800", "DF200", "DE119", "DK359"], n),
        "c_pattype": rng.choice([0, 2, 3], n),
        "kom": rng.choice([101, 147, 155, 201, 219, 265, 329, 461, 561, 621, 751, 851], people)[of],
        "koen": rng.integers(1, 3, people)[of], "alder": rng.integers(0, 99, people)[of],
        "drg": rng.choice(["04MA13", "05MA01", "08MP15", "14MP01", "19MA04", "10MA06"], n),
        "takst": rng.lognormal(9.8, 0.8, n).round(0),
    }  # fmt: skip
    return _with_expert(columns, {
        "pnr": "unit|key", "recnum": "unit|key|left", "d_inddto": "left", "d_uddto": "left",
        "v_sengdage": "numeric|sensitive|nominal",
        "c_adiag": "sensitive|nominal", "drg": "sensitive|nominal", "kom": "region|nominal",
        "alder": "numeric",
        "takst": "numeric|sensitive", "c_sgh": "nominal|key",
    })  # fmt: skip


def encuesta_de_empresas(rng: np.random.Generator, n: int = 2_500) -> Made:
    """Return a Spanish survey of enterprises."""
    persons = rng.lognormal(2.5, 1.1, n).round().clip(1).astype(int)
    sales = (persons * rng.lognormal(4.3, 0.6, n)).round(2)
    staff = (persons * rng.lognormal(3.2, 0.3, n)).round(2)
    province = rng.integers(1, 53, n)
    columns = {
        "id_empresa": rng.permutation(n) + 100_001, "ccaa": province % 17 + 1, "provincia": province,
        "cnae": rng.choice([1013, 1071, 1085, 2363, 2511, 3101, 4121, 4332, 4520, 4711, 4941, 5610, 6201], n),
        "forma_juridica": rng.choice(["SA", "SL", "COOP", "PF"], n, p=[0.15, 0.6, 0.05, 0.2]),
        "anyo_creacion": rng.integers(1950, 2021, n), "estrato": rng.integers(1, 7, n),
        "personal_ocupado": persons, "cifra_negocios": sales, "gastos_personal": staff,
        "compras": (sales * rng.uniform(0.2, 0.7, n)).round(2), "inversion": amounts(rng, n, 0.4, 80.0),
        "exporta": rng.integers(0, 2, n),
        "factor_elevacion": rng.uniform(1, 40, 6)[rng.integers(0, 6, n)].round(6),
    }  # fmt: skip
    number = dict.fromkeys(
        ["personal_ocupado", "cifra_negocios", "gastos_personal", "compras", "inversion"], "numeric|sensitive"
    )
    return _with_expert(columns, {
        "id_empresa": "unit", "ccaa": "region|nominal", "provincia": "nominal|region",
        "anyo_creacion": "numeric|nominal",
        "factor_elevacion": "weight", **number,
    })  # fmt: skip


LATER: tuple[Callable[..., Made], ...] = (
    ess, pisa, soep, nhanes, ehis, pnad, lsms, recensement_agricole, patient_register, encuesta_de_empresas,
)  # fmt: skip
