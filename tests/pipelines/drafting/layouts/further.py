"""Files in the layouts of thirteen more codebooks, written after the engine was corrected with the files of
`later`.

Sources: ACS PUMS 2022 and CPS ASEC 2023 of the Census Bureau, General Social Survey 2022, Understanding
Society wave 13, MICS6 of UNICEF (women), SHARE wave 8, World Values Survey 7, PIAAC 2012, ENIGH 2022 of
INEGI, Periodic Labour Force Survey of India, Community Innovation Survey 2020, MEPS 2021, BRFSS 2022.
`layouts` defines the expert roles.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from tests.pipelines.drafting.layouts.developed import ISCO_2, amounts, homes
from tests.pipelines.drafting.layouts.later import ages

Made = tuple[pd.DataFrame, dict[str, str]]
MONEY = "sensitive|numeric"


def _with_expert(columns: dict[str, object], expert: dict[str, str]) -> Made:
    frame = pd.DataFrame(columns)
    return frame, {name: expert.get(name, "nominal") for name in frame}


def codes(rng: np.random.Generator, n: int, *listed: int) -> np.ndarray:
    """Return codes of a list; earlier codes are more frequent."""
    shares = 1.0 / np.arange(1, len(listed) + 1)
    return rng.choice(listed, n, p=shares / shares.sum())


def usual(rng: np.random.Generator, n: int, most_usual: int, largest: int) -> np.ndarray:
    """Return hours per week, or minutes to work: many people have the usual number."""
    others = rng.normal(most_usual * 0.9, most_usual / 3, n).round().clip(1, largest)
    return np.where(rng.random(n) < 0.35, most_usual, others).astype(int)


def acs_pums(rng: np.random.Generator, n: int = 3_000) -> Made:
    """Return the layout of the persons of the American Community Survey."""
    of, line = homes(rng, n)
    weight = rng.integers(5, 260, n)
    pay = np.where(rng.random(n) < 0.6, np.round(rng.lognormal(10.5, 0.8, n), -1), 0.0)
    columns = {
        "SERIALNO": np.array([f"2022HU{1_000_000 + i:07}" for i in of]), "SPORDER": line,
        "PUMA": rng.integers(101, 125, of.max() + 1)[of] * 100, "ST": 6, "ADJINC": 1_042_311,
        "PWGTP": weight, "AGEP": ages(rng, n), "SEX": rng.integers(1, 3, n),
        "RAC1P": codes(rng, n, 1, 2, 6, 8, 9, 3, 5, 7, 4), "SCHL": rng.integers(1, 25, n),
        "MAR": codes(rng, n, 1, 5, 3, 2, 4), "COW": codes(rng, n, 1, 2, 3, 6, 7, 4, 5, 8, 9),
        "OCCP": rng.choice([110, 440, 1021, 2310, 3255, 4020, 4720, 5240, 6230, 9130], n),
        "HICOV": codes(rng, n, 1, 2), "DIS": codes(rng, n, 2, 1), "JWMNP": usual(rng, n, 20, 120),
        "WKHP": usual(rng, n, 40, 98), "WAGP": pay,
    }  # fmt: skip
    return _with_expert(columns, {
        "SERIALNO": "household|key", "SPORDER": "nominal|numeric|left|key", "PUMA": "region|nominal",
        "ST": "nominal|other|region", "ADJINC": "nominal|other|left", "PWGTP": "weight", "AGEP": "numeric",
        "SCHL": "nominal|numeric", "DIS": "sensitive|nominal", "HICOV": "sensitive|nominal",
        "JWMNP": "numeric", "WKHP": "numeric", "WAGP": MONEY,
    })  # fmt: skip


def cps_asec(rng: np.random.Generator, n: int = 3_000) -> Made:
    """Return the layout of the persons of the Annual Social and Economic Supplement."""
    of, line = homes(rng, n)
    wages = amounts(rng, n, 0.6, 42_000.0).round()
    interest, dividends = amounts(rng, n, 0.3, 300.0).round(), amounts(rng, n, 0.1, 900.0).round()
    columns = {
        "PH_SEQ": of + 1, "PPPOSOLD": line, "A_AGE": ages(rng, n).clip(0, 85), "A_SEX": rng.integers(1, 3, n),
        "A_MARITL": codes(rng, n, 1, 7, 5, 4, 6, 3, 2), "PRDTRACE": codes(rng, n, 1, 2, 4, 3, 7, 5),
        "A_HGA": rng.integers(31, 47, n), "PRCITSHP": codes(rng, n, 1, 5, 4, 3, 2),
        "GESTFIPS": rng.choice([1, 4, 6, 8, 12, 13, 17, 36, 48], of.max() + 1)[of],
        "PEIOOCC": rng.choice([10, 430, 2310, 4700, 5700, 9130], n), "WSAL_VAL": wages,
        "INT_VAL": interest, "DIV_VAL": dividends, "PTOTVAL": wages + interest + dividends,
        "HRSWK": usual(rng, n, 40, 98), "A_FNLWGT": (rng.lognormal(7.3, 0.5, n) * 100).round(),
        "MARSUPWT": (rng.lognormal(7.3, 0.5, n)).round(2),
    }  # fmt: skip
    return _with_expert(columns, {
        "PH_SEQ": "household|key", "PPPOSOLD": "nominal|numeric|left|key", "A_AGE": "numeric",
        "A_HGA": "nominal|numeric", "GESTFIPS": "region|nominal", "WSAL_VAL": MONEY, "INT_VAL": MONEY,
        "DIV_VAL": MONEY, "PTOTVAL": f"{MONEY}|left", "HRSWK": "numeric", "A_FNLWGT": "weight",
        "MARSUPWT": "weight",
    })  # fmt: skip


def gss(rng: np.random.Generator, n: int = 2_500) -> Made:
    """Return the layout of the General Social Survey."""
    age = ages(rng, n).clip(18, 89)
    columns = {
        "year": 2022, "id": np.arange(n) + 1, "wtssnrps": rng.lognormal(-0.2, 0.6, n).round(6),
        "vstrat": rng.integers(3301, 3500, n), "vpsu": rng.integers(1, 4, n), "age": age,
        "sex": rng.integers(1, 3, n), "race": codes(rng, n, 1, 2, 3), "educ": rng.integers(0, 21, n),
        "degree": rng.integers(0, 5, n), "marital": codes(rng, n, 1, 5, 3, 2, 4),
        "childs": rng.integers(0, 9, n),
        "region": rng.integers(1, 10, n), "partyid": rng.integers(0, 8, n),
        "relig": codes(rng, n, 1, 4, 2, 3, 5),
        "attend": rng.integers(0, 9, n), "happy": rng.integers(1, 4, n), "hrs1": usual(rng, n, 40, 89),
        "realrinc": np.where(rng.random(n) < 0.6, rng.lognormal(9.8, 0.9, n).round(1), np.nan),
    }  # fmt: skip
    return _with_expert(columns, {
        "year": "nominal|other", "id": "unit", "wtssnrps": "weight", "vstrat": "nominal|other|key|left",
        "vpsu": "nominal|other|key|left", "age": "numeric", "educ": "numeric|nominal",
        "childs": "numeric|nominal", "region": "region|nominal", "partyid": "sensitive|nominal",
        "relig": "sensitive|nominal", "hrs1": "numeric", "realrinc": MONEY, "happy": "sensitive|nominal",
    })  # fmt: skip


def ukhls(rng: np.random.Generator, n: int = 3_000) -> Made:
    """Return the layout of the individual responses of Understanding Society."""
    of, line = homes(rng, n)
    age, weight = ages(rng, n).clip(16, 101), rng.lognormal(0, 0.5, n)
    weight /= weight.mean()
    columns = {
        "pidp": rng.permutation(n) * 4 + 68_001_367, "m_hidp": of * 2 + 68_006_802, "m_pno": line,
        "m_sex_dv": rng.integers(1, 3, n), "m_age_dv": age, "m_doby_dv": 2021 - age,
        "m_gor_dv": rng.integers(1, 13, of.max() + 1)[of], "m_urban_dv": rng.integers(1, 3, of.max() + 1)[of],
        "m_marstat": codes(rng, n, 1, 2, 5, 6, 4, -2), "m_hiqual_dv": codes(rng, n, 1, 2, 3, 4, 5, 9, -8),
        "m_jbnssec8_dv": codes(rng, n, -8, 3, 2, 7, 6, 1, 4, 5, 8),
        "m_racel_dv": codes(rng, n, 1, 4, 9, 10, 11, 14, -9),
        "m_fimnlabgrs_dv": amounts(rng, n, 0.6, 1_900.0), "m_scsf1": rng.integers(1, 6, n),
        "m_sclfsato": rng.integers(1, 8, n), "m_indinus_lw": weight.round(7),
    }  # fmt: skip
    return _with_expert(columns, {
        "pidp": "unit", "m_hidp": "household|key", "m_pno": "nominal|numeric|left|key",
        "m_age_dv": "numeric|left",
        "m_doby_dv": "numeric|nominal|left", "m_gor_dv": "region|nominal", "m_fimnlabgrs_dv": MONEY,
        "m_scsf1": "sensitive|nominal", "m_sclfsato": "sensitive|nominal", "m_indinus_lw": "weight",
    })  # fmt: skip


def mics(rng: np.random.Generator, n: int = 3_000) -> Made:
    """Return the layout of the women's file of MICS6."""
    clusters = 150
    of = np.sort(rng.integers(0, clusters, n))
    born = rng.integers(1972, 2006, n)
    columns = {
        "HH1": of + 1, "HH2": rng.integers(1, 26, n), "LN": codes(rng, n, 1, 2, 3, 4, 5),
        "WM6Y": 2021, "WM6M": rng.integers(3, 9, n), "HH6": rng.integers(1, 3, clusters)[of],
        "HH7": rng.integers(1, 9, clusters)[of], "WB3Y": born, "WB4": 2021 - born - rng.integers(0, 2, n),
        "WB6A": codes(rng, n, 2, 1, 3, 0, 4, 8), "MSTATUS": codes(rng, n, 1, 3, 2, 9),
        "CEB": rng.poisson(2.1, n), "HA1": codes(rng, n, 1, 2, 9), "DV1A": codes(rng, n, 2, 1, 8),
        "windex5": rng.integers(1, 6, n), "wscore": rng.normal(0, 1, n).round(6),
        "wmweight": rng.lognormal(-0.1, 0.5, clusters)[of].round(8),
    }  # fmt: skip
    return _with_expert(columns, {
        "HH1": "nominal|key|region|other", "HH2": "nominal|key|other", "WM6Y": "nominal|other",
        "LN": "nominal|left|key", "HH7": "region|nominal", "WB3Y": "numeric|nominal|left", "WB4": "numeric",
        "CEB": "numeric|nominal", "HA1": "sensitive|nominal", "DV1A": "sensitive|nominal",
        "wscore": "numeric|sensitive", "windex5": "sensitive|nominal", "wmweight": "weight",
    })  # fmt: skip


def share(rng: np.random.Generator, n: int = 2_500) -> Made:
    """Return the layout of the generated variables of SHARE, one country."""
    of, line = homes(rng, n, 2)
    age = rng.integers(50, 98, n)
    columns = {
        "mergeid": np.array([f"AT-{100_000 + 7 * i:06}-{j:02}" for i, j in zip(of, line, strict=True)]),
        "hhid8": np.array([f"AT-{100_000 + 7 * i:06}-A" for i in of]), "country": 11,
        "gender": rng.integers(1, 3, n), "yrbirth": 2020 - age, "age2020": age,
        "isced1997_r": rng.choice([0, 1, 2, 3, 4, 5, 6, 95, 97], n),
        "mar_stat": codes(rng, n, 1, 6, 5, 4, 2, 3),
        "hhsize": np.bincount(of)[of], "nchild": rng.poisson(1.9, n), "sphus": rng.integers(1, 6, n),
        "chronic": rng.poisson(1.5, n), "eurod": rng.integers(0, 13, n), "bmi": rng.normal(27, 4, n).round(4),
        "maxgrip": rng.normal(34, 10, n).clip(5).round(),
        "thinc_m": rng.lognormal(10.3, 0.6, of.max() + 1)[of].round(2),
        "cciw_w8": (rng.lognormal(6.5, 0.6, n)).round(4),
    }  # fmt: skip
    return _with_expert(columns, {
        "mergeid": "unit", "hhid8": "household|key", "country": "nominal|other",
        "yrbirth": "numeric|nominal|left",
        "age2020": "numeric|left", "hhsize": "nominal|numeric", "nchild": "nominal|numeric",
        "sphus": "sensitive|nominal", "chronic": "sensitive|numeric|nominal",
        "eurod": "sensitive|nominal|numeric",
        "bmi": "numeric|sensitive", "maxgrip": "numeric|sensitive", "thinc_m": MONEY, "cciw_w8": "weight",
    })  # fmt: skip


def wvs(rng: np.random.Generator, n: int = 2_500) -> Made:
    """Return the layout of the World Values Survey, one country."""
    columns = {
        "A_WAVE": 7, "B_COUNTRY_ALPHA": "SVK", "D_INTERVIEW": np.arange(n) + 703_070_001,
        "W_WEIGHT": rng.lognormal(0, 0.25, n).round(6), "N_REGION_ISO": rng.integers(703_001, 703_009, n),
        "G_TOWNSIZE": rng.integers(1, 9, n), "Q1": rng.integers(1, 5, n), "Q46": rng.integers(1, 5, n),
        "Q47": rng.integers(1, 6, n), "Q240": codes(rng, n, 5, 6, 4, 7, 3, 8, 1, 10, 2, 9, -1),
        "Q260": rng.integers(1, 3, n), "Q262": rng.integers(18, 91, n),
        "Q273": codes(rng, n, 1, 6, 5, 3, 2, 4),
        "Q274": rng.poisson(1.4, n), "Q275": rng.integers(0, 9, n),
        "Q279": codes(rng, n, 1, 4, 7, 2, 3, 5, 6),
        "Q288": rng.integers(1, 11, n), "Q289": codes(rng, n, 1, 0, 2, 3, 5),
    }  # fmt: skip
    return _with_expert(columns, {
        "A_WAVE": "nominal|other", "B_COUNTRY_ALPHA": "nominal|other|region", "D_INTERVIEW": "unit",
        "W_WEIGHT": "weight", "N_REGION_ISO": "region|nominal", "Q262": "numeric", "Q274": "nominal|numeric",
        "Q240": "sensitive|nominal", "Q289": "sensitive|nominal",
    })  # fmt: skip


def piaac(rng: np.random.Generator, n: int = 2_500) -> Made:
    """Return the layout of the Survey of Adult Skills."""
    skill = rng.normal(270, 45, n)
    hourly, hours = rng.lognormal(2.7, 0.4, n), usual(rng, n, 40, 90)
    columns = {
        "CNTRYID": 40, "SEQID": np.arange(n) + 1, "AGE_R": rng.integers(16, 66, n),
        "GENDER_R": rng.integers(1, 3, n),
        "EDCAT7": rng.integers(1, 8, n), "C_D05": codes(rng, n, 1, 3, 2, 4), "ISCO2C": rng.choice(ISCO_2, n),
        "ISIC1C": rng.choice(list("ABCDEFGHIJKLMNOPQRS"), n), "J_Q08": rng.integers(1, 7, n),
        "TL_REGION": rng.choice(["AT11", "AT12", "AT13", "AT21", "AT22", "AT31", "AT32", "AT33"], n),
        "D_Q10": hours, "EARNHR": hourly.round(4), "PVLIT1": skill.round(3),
        "PVLIT2": (skill + rng.normal(0, 15, n)).round(3), "PVNUM1": (skill + rng.normal(0, 20, n)).round(3),
        "SPFWT0": rng.lognormal(6.8, 0.5, n).round(4),
    }  # fmt: skip
    return _with_expert(columns, {
        "CNTRYID": "nominal|other", "SEQID": "unit", "AGE_R": "numeric", "TL_REGION": "region|nominal",
        "D_Q10": "numeric", "EARNHR": MONEY, "PVLIT1": MONEY, "PVLIT2": MONEY, "PVNUM1": MONEY,
        "SPFWT0": "weight",
    })  # fmt: skip


def enigh(rng: np.random.Generator, n: int = 2_500) -> Made:
    """Return the layout of the households of the Mexican income and expenditure survey."""
    work, rent, gifts = (amounts(rng, n, share, 20_000.0) for share in (0.9, 0.2, 0.5))
    people = rng.integers(1, 9, n)
    minors = np.minimum(rng.poisson(0.8, n), people - 1)
    state = rng.integers(1, 33, n)
    columns = {
        "folioviv": np.array([f"{s:02}{i:08}" for s, i in zip(state, rng.permutation(n) + 9, strict=True)]),
        "foliohog": 1,
        "ubica_geo": np.array([f"{s:02}{m:03}" for s, m in zip(state, rng.integers(1, 6, n), strict=True)]),
        "tam_loc": rng.integers(1, 5, n), "est_socio": rng.integers(1, 5, n),
        "factor": rng.integers(40, 900, n),
        "clase_hog": codes(rng, n, 2, 3, 1, 4, 5), "sexo_jefe": rng.integers(1, 3, n),
        "edad_jefe": rng.integers(18, 95, n),
        "educa_jefe": np.array([f"{i:02}" for i in rng.integers(1, 12, n)]), "tot_integ": people,
        "menores": minors,
        "mayores": people - minors, "ingtrab": work, "rentas": rent, "transfer": gifts,
        "ing_cor": (work + rent + gifts).round(2), "alimentos": amounts(rng, n, 0.99, 9_000.0),
    }  # fmt: skip
    return _with_expert(columns, {
        "folioviv": "unit|household|key", "foliohog": "nominal|other", "ubica_geo": "region|nominal",
        "factor": "weight", "edad_jefe": "numeric", "tot_integ": "nominal|numeric|left",
        "menores": "nominal|numeric|left", "mayores": "nominal|numeric|left", "ingtrab": MONEY,
        "rentas": MONEY,
        "transfer": MONEY, "ing_cor": f"{MONEY}|left", "alimentos": MONEY,
    })  # fmt: skip


def plfs(rng: np.random.Generator, n: int = 3_000) -> Made:
    """Return the layout of the persons of the Periodic Labour Force Survey of India."""
    of, line = homes(rng, n, 8)
    h = of.max() + 1
    columns = {
        "Quarter": np.array(["Q1", "Q2", "Q3", "Q4"])[rng.integers(0, 4, h)[of]],
        "Sector": rng.integers(1, 3, h)[of],
        "State_Ut_Code": rng.integers(1, 37, h)[of], "FSU": (rng.integers(0, 400, h) + 10_001)[of],
        "HH_ID": np.array([f"{70_000_000 + 13 * i}" for i in of]), "Person_No": line,
        "Relation": np.where(line < 3, line, rng.integers(3, 10, n)),
        "Gender": rng.integers(1, 3, n), "Age": ages(rng, n), "Marital_Status": codes(rng, n, 2, 1, 3, 4),
        "General_Edu": rng.choice([1, 5, 6, 7, 8, 10, 11, 12, 13], n),
        "NCO_2015": rng.choice(ISCO_2, n) * 10 + 1,
        "Principal_Status": rng.choice([11, 12, 21, 31, 41, 51, 81, 91, 92, 97], n),
        "Religion": codes(rng, h, 1, 2, 3, 4, 5)[of], "Social_Group": codes(rng, h, 9, 3, 2, 1)[of],
        "Earnings_Regular": amounts(rng, n, 0.3, 14_000.0).round(),
        "Mult": (rng.lognormal(9, 0.6, h))[of].round(),
    }  # fmt: skip
    return _with_expert(columns, {
        "State_Ut_Code": "region|nominal", "FSU": "nominal|key|other|region", "HH_ID": "household|key",
        "Person_No": "nominal|numeric|left|key", "Age": "numeric", "Religion": "sensitive|nominal",
        "Social_Group": "sensitive|nominal", "Earnings_Regular": MONEY, "Mult": "weight",
    })  # fmt: skip


def cis(rng: np.random.Generator, n: int = 2_000) -> Made:
    """Return the layout of the Community Innovation Survey."""
    staff = np.round(rng.lognormal(3.7, 1.1, n)).clip(10)
    turnover = (staff * rng.lognormal(11.8, 0.5, n)).round()
    inner, outer = amounts(rng, n, 0.4, 300_000.0).round(), amounts(rng, n, 0.2, 80_000.0).round()
    columns = {
        "ENT_ID": rng.permutation(n) + 9_000_001,
        "NACE": rng.choice(["C10", "C20", "C28", "G46", "H49", "J62", "M71"], n),
        "NUTS": rng.choice(["SI031", "SI032", "SI033", "SI041", "SI042"], n),
        "SIZECLASS": np.digitize(staff, [50, 250]) + 1,
        "GP": rng.integers(0, 2, n),
        "HO": rng.choice(["SI", "AT", "DE", "IT", "US"], n, p=[0.8, 0.08, 0.06, 0.04, 0.02]),
        "TURN18": (turnover * rng.uniform(0.7, 1.2, n)).round(), "TURN20": turnover, "EMP20": staff,
        "INPDGD": rng.integers(0, 2, n), "INPSPD": rng.integers(0, 2, n), "RRDIN": inner, "RRDEX": outer,
        "RTOT": inner + outer, "CO": rng.integers(0, 2, n), "FUNGMT": rng.integers(0, 2, n),
        "WEIGHTNR": rng.choice([1.0, 1.7, 2.4, 3.2, 6.5], n),
    }  # fmt: skip
    return _with_expert(columns, {
        "ENT_ID": "unit", "NUTS": "region|nominal", "SIZECLASS": "nominal|left", "TURN18": MONEY,
        "TURN20": MONEY,
        "EMP20": "numeric|sensitive", "RRDIN": MONEY, "RRDEX": MONEY, "RTOT": f"{MONEY}|left",
        "WEIGHTNR": "weight",
    })  # fmt: skip


def meps(rng: np.random.Generator, n: int = 3_000) -> Made:
    """Return the layout of the consolidated file of the Medical Expenditure Panel Survey."""
    of, line = homes(rng, n)
    own, insured = amounts(rng, n, 0.8, 300.0).round(), amounts(rng, n, 0.6, 1_500.0).round()
    columns = {
        "DUID": of + 2_320_005, "PID": line + 100, "DUPERSID": (of + 2_320_005) * 1_000 + line + 100,
        "PANEL": 26,
        "REGION21": rng.integers(1, 5, of.max() + 1)[of], "AGE21X": ages(rng, n).clip(0, 85),
        "SEX": rng.integers(1, 3, n),
        "RACETHX": codes(rng, n, 2, 1, 3, 4, 5), "MARRY21X": codes(rng, n, 1, 5, 6, 3, 2, 4, -8),
        "POVCAT21": rng.integers(1, 6, n), "RTHLTH53": codes(rng, n, 2, 1, 3, 4, 5, -8),
        "DIABDX_M18": codes(rng, n, 2, 1, -1),
        "OBTOTV21": rng.negative_binomial(0.6, 0.08, n), "TOTSLF21": own, "TOTPRV21": insured,
        "TOTEXP21": own + insured,
        "TTLP21X": amounts(rng, n, 0.7, 38_000.0).round(), "PERWT21F": rng.lognormal(9.3, 0.6, n).round(6),
        "VARSTR": rng.integers(2001, 2118, n), "VARPSU": rng.integers(1, 4, n),
    }  # fmt: skip
    return _with_expert(columns, {
        "DUID": "household|key", "PID": "nominal|numeric|left|key", "DUPERSID": "unit",
        "PANEL": "nominal|other",
        "REGION21": "region|nominal", "AGE21X": "numeric", "RTHLTH53": "sensitive|nominal",
        "DIABDX_M18": "sensitive|nominal", "OBTOTV21": MONEY, "TOTSLF21": MONEY, "TOTPRV21": MONEY,
        "TOTEXP21": f"{MONEY}|left", "TTLP21X": MONEY, "PERWT21F": "weight",
        "VARSTR": "nominal|other|key|left",
        "VARPSU": "nominal|other|key|left", "POVCAT21": "nominal|sensitive",
    })  # fmt: skip


def brfss(rng: np.random.Generator, n: int = 3_000) -> Made:
    """Return the layout of the Behavioral Risk Factor Surveillance System."""
    height, weight = rng.integers(147, 203, n), (rng.normal(82, 18, n).clip(35) * 100).round()
    columns = {
        "_STATE": rng.choice([1, 2, 4, 5, 6, 8, 9, 10, 12], n), "SEQNO": np.arange(n) + 2_022_000_001,
        "_PSU": np.arange(n) + 2_022_000_001, "IMONTH": np.array([f"{i:02}" for i in rng.integers(1, 13, n)]),
        "GENHLTH": codes(rng, n, 2, 3, 1, 4, 5, 7, 9),
        "PHYSHLTH": np.where(rng.random(n) < 0.6, 88, rng.integers(1, 31, n)),
        "MARITAL": codes(rng, n, 1, 5, 2, 3, 6, 4, 9), "EDUCA": codes(rng, n, 6, 5, 4, 3, 2, 9),
        "INCOME3": codes(rng, n, 7, 5, 6, 9, 8, 10, 4, 3, 77, 99),
        "EMPLOY1": codes(rng, n, 1, 7, 2, 8, 5, 4, 3, 6, 9),
        "SEXVAR": rng.integers(1, 3, n), "_AGE80": rng.integers(18, 81, n), "HTM4": height, "WTKG3": weight,
        "_BMI5": (weight / (height / 100) ** 2).round(), "DIABETE4": codes(rng, n, 3, 1, 4, 2, 7, 9),
        "_SMOKER3": codes(rng, n, 4, 3, 1, 2, 9), "_LLCPWT": rng.lognormal(5.8, 1.1, n).round(7),
    }  # fmt: skip
    return _with_expert(columns, {
        "_STATE": "region|nominal", "SEQNO": "unit|key", "_PSU": "unit|key|left",
        "GENHLTH": "sensitive|nominal",
        "PHYSHLTH": "sensitive|numeric|nominal", "INCOME3": "sensitive|nominal", "_AGE80": "numeric",
        "HTM4": "numeric|sensitive",
        "WTKG3": "numeric|sensitive", "_BMI5": "numeric|left|sensitive", "DIABETE4": "sensitive|nominal",
        "_SMOKER3": "sensitive|nominal", "_LLCPWT": "weight",
    })  # fmt: skip


FURTHER: tuple[Callable[..., Made], ...] = (
    acs_pums, cps_asec, gss, ukhls, mics, share, wvs, piaac, enigh, plfs, cis, meps, brfss,
)  # fmt: skip
