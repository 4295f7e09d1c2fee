"""Persons in households by the codebook of EU-SILC (24 columns), with the roles that an expert assigns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

PERSONS = 14_827
STATES = ("Burgenland", "Carinthia", "Lower Austria", "Salzburg", "Styria", "Tyrol", "Upper Austria",
          "Vienna", "Vorarlberg")  # fmt: skip
#: Net income components: share of persons (py) or households (hy) with a value, and the mean of its
#: logarithm.
PERSONAL = {"py010n": (0.43, 9.6), "py050n": (0.07, 9.3), "py090n": (0.05, 8.1), "py100n": (0.16, 9.5),
            "py120n": (0.02, 7.3), "py130n": (0.02, 8.9)}  # fmt: skip
HOUSEHOLD = {"hy040n": (0.05, 8.0), "hy050n": (0.36, 8.1), "hy070n": (0.04, 7.2), "hy080n": (0.06, 8.1),
             "hy090n": (0.80, 5.0), "hy110n": (0.01, 7.5), "hy130n": (0.07, 8.0),
             "hy145n": (0.60, 6.0)}  # fmt: skip


def eusilc(persons: int = PERSONS, seed: int = 2026) -> pd.DataFrame:
    """Generate about this many persons; none of them is real."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([1, 2, 3, 4, 5, 6], persons, p=[0.3, 0.29, 0.17, 0.16, 0.06, 0.02])
    sizes = sizes[: np.searchsorted(np.cumsum(sizes), persons) + 1]
    household = np.repeat(np.arange(len(sizes)), sizes)
    n, shared = len(household), lambda values: values[household]
    age = np.clip(np.round(rng.gamma(3.2, 13.0, n)), 0, 97).astype(np.int16)
    grown = age >= 16
    status = np.where(
        grown, rng.choice([1, 2, 3, 4, 5, 6, 7], n, p=[0.45, 0.1, 0.05, 0.06, 0.2, 0.02, 0.12]), np.nan
    )
    frame = pd.DataFrame(
        {
            "db030": household + 1,
            "rb030": (household + 1) * 100 + np.arange(n) - np.searchsorted(household, household) + 1,
            "hsize": shared(sizes).astype(np.int8),
            "db040": shared(rng.choice(STATES, len(sizes), p=[.04, .07, .18, .06, .15, .08, .18, .2, .04])),
            "age": age,
            "rb090": rng.choice(["female", "male"], n),
            "pl030": pd.array(status, dtype="Int8"),
            "pb220a": rng.choice(["AT", "EU", "Other"], n, p=[0.88, 0.04, 0.08]),
        }
    )  # fmt: skip
    for name, (share, mean) in PERSONAL.items():
        frame[name] = np.where(grown & (rng.random(n) < share), np.round(rng.lognormal(mean, 0.9, n), 2), 0.0)
    for name, (share, mean) in HOUSEHOLD.items():
        has = rng.random(len(sizes)) < share
        frame[name] = shared(np.where(has, np.round(rng.lognormal(mean, 0.9, len(sizes)), 2), 0.0))
    frame["db090"] = shared(np.round(rng.uniform(400, 1200, len(sizes)), 4))
    frame["rb050"] = frame["db090"]
    return frame


#: Roles that an expert assigns by the codebook; incomes are published as they are.
ROLES = {
    "db030": {"role": "household"},
    "rb030": {"role": "unit"},
    "hsize": {"role": "quasi_identifier", "kind": "nominal"},
    "db040": {"role": "region"},
    "age": {"role": "quasi_identifier", "kind": "numeric"},
    "rb090": {"role": "quasi_identifier", "kind": "nominal"},
    "pl030": {"role": "quasi_identifier", "kind": "nominal"},
    "pb220a": {"role": "quasi_identifier", "kind": "nominal"},
    "py010n": {"role": "sensitive", "kind": "numeric"},
    **{name: {"role": "other"} for name in [*PERSONAL, *HOUSEHOLD] if name != "py010n"},
    "db090": {"role": "other"},
    "rb050": {"role": "weight"},
}


def specification_text(folder: Path, persons: int = PERSONS) -> str:
    """Write the file to a folder; return the text of its specification."""
    eusilc(persons).to_parquet(folder / "eusilc.parquet", index=False)
    roles = "\n".join(
        name + " = { " + ", ".join(f'{key} = "{value}"' for key, value in role.items()) + " }"
        for name, role in ROLES.items()
    )
    return (
        '[release]\nname = "eusilc"\nk = 3\n[input]\npath = "eusilc.parquet"\n'
        f'[variables]\n{roles}\n[publish]\npath = "lake"\nevidence = "evidence"\n'
    )
