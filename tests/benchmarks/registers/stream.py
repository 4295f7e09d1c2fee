"""Generate the updates of a synthetic register with entrants, exits, corrections and unusual events.

A regular update has 1 % entrants, 1 % exits and 0.5 % corrections. Unusual updates are bursts, mass
departures, returns, reverted corrections, empty updates, and updates with fewer changes than any k.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

#: Shares of entrants, exits and corrections in a regular update.
COME, LEAVE, CORRECTED = 0.01, 0.01, 0.005
#: Number of units per region at the start; a region never has fewer than a seventh of them.
OF_REGION = 400
#: Events of unusual updates, by number from 1.
EVENTS = {
    3: "few",
    4: "empty",
    5: "burst",
    6: "mass departure",
    8: "return",
    9: "region emptied",
    10: "taken back",
    11: "region returns",
    15: "empty",
    18: "burst",
    20: "mass departure",
    23: "return",
    26: "few",
}
#: Shares in unusual updates: entrants of a burst, exits of a mass departure, returning units.
BURST, MASS, RETURN = 0.05, 0.10, 0.5
#: Share of units that remain in a region that is emptied.
STAYS = 0.15
#: Column of the unit, and an identifying column with which a reader can match every row.
UNIT, TRACE = "person", "weight"

_NUMERIC = ("income", "rent", "savings", "hours", "age")
_NOMINAL = ("sex", "civil", "sector", "tenure", "origin")
#: Quasi-identifiers by kind of the register.
QUASI_IDENTIFIERS = {
    "numeric": dict.fromkeys(_NUMERIC, "numeric"),
    "nominal": dict.fromkeys(_NOMINAL, "nominal"),
    "mixed": dict.fromkeys(_NOMINAL[:2], "nominal") | dict.fromkeys(_NUMERIC[:3], "numeric"),
}


def roles(kind: str) -> dict[str, dict[str, str]]:
    """Return the roles of the columns for the specification."""
    protected = {
        name: {"role": "quasi_identifier", "kind": kind_of_variable}
        for name, kind_of_variable in QUASI_IDENTIFIERS[kind].items()
    }
    plain = {"diagnosis": {"role": "sensitive"}, TRACE: {"role": "weight"}}
    return {UNIT: {"role": "unit"}, "region": {"role": "region"}, **protected, **plain}


@dataclass(frozen=True)
class Update:
    """One update.

    Attributes
    ----------
    number : int
        Number of the update, from 1.
    event : str
        Name of the event; empty for a regular update.
    frame : DataFrame
        The register, with one row per unit.
    """

    number: int
    event: str
    frame: pd.DataFrame


def register_updates(
    kind: str, units: int, number: int, seed: int, *, calm: bool = False
) -> Iterator[Update]:
    """Yield the register of each update.

    Parameters
    ----------
    kind : {"numeric", "nominal", "mixed"}
    units : int
        Number of units in the first update.
    number : int
        Number of updates.
    seed : int
    calm : bool
        Whether all updates are regular.
    """
    random = np.random.default_rng(seed)
    everybody = people(kind, units, 2 * units, random)
    original = everybody.copy()
    there = np.arange(len(everybody)) < units
    # units that were never in the register; the next entrant is first
    never = np.arange(units, len(everybody))
    regions = everybody["region"].to_numpy()
    for night in range(1, number + 1):
        event = "" if calm else EVENTS.get(night, "")
        if night > 1 and event != "empty":
            count = int(there.sum())
            come, leave, change = _shares(event, count)
            leavers = random.choice(np.flatnonzero(there), leave, replace=False)
            entrants, never = never[:come], never[come:]
            if event == "return":
                away = np.setdiff1d(np.flatnonzero(~there), never)
                away = np.setdiff1d(away, entrants)
                entrants = np.concatenate(
                    [entrants, random.choice(away, int(RETURN * len(away)), replace=False)]
                )
            there[leavers] = False
            there[entrants] = True
            if event == "region emptied":
                emptying = np.flatnonzero(there & (regions == regions[0]))
                there[random.permutation(emptying)[int(STAYS * len(emptying)) :]] = False
            if event == "region returns":
                there[np.setdiff1d(np.flatnonzero(regions == regions[0]), never)] = True
            if event == "taken back":
                everybody = original.copy()
            correct(everybody, random.choice(np.flatnonzero(there), change, replace=False), kind, random)
        frame = everybody[there]
        yield Update(night, event, frame.iloc[random.permutation(len(frame))].reset_index(drop=True))


def _shares(event: str, count: int) -> tuple[int, int, int]:
    """Return the numbers of entrants, exits and corrections."""
    if event == "few":
        return 1, 1, 0
    come = BURST if event == "burst" else COME
    leave = MASS if event == "mass departure" else LEAVE
    return round(come * count), round(leave * count), round(CORRECTED * count)


def people(kind: str, units: int, number: int, random: np.random.Generator) -> pd.DataFrame:
    """Draw all units that will be in the register at any time."""
    wealth = random.normal(size=number)
    columns: dict[str, np.ndarray] = {
        UNIT: random.permutation(number) + 1_000_000,
        "region": np.array([f"r{i}" for i in random.integers(0, max(1, units // OF_REGION), number)]),
        "income": np.round(np.exp(8 + 0.6 * wealth + 0.5 * random.normal(size=number))),
        "rent": np.round(np.exp(6 + 0.3 * wealth + 0.4 * random.normal(size=number))),
        "savings": np.round(np.exp(9 + 0.9 * wealth + random.normal(size=number))),
        "hours": random.integers(1, 61, number),
        "age": random.integers(18, 100, number),
    }
    for place, name in enumerate(_NOMINAL):
        values = 2 + place
        share = 1.0 / np.arange(1, values + 1)
        columns[name] = np.array(list("abcdefgh"))[random.choice(values, number, p=share / share.sum())]
    frame = pd.DataFrame(columns)[[UNIT, "region", *QUASI_IDENTIFIERS[kind]]]
    diagnosis = np.array([f"d{i}" for i in range(8)])[random.integers(0, 8, number)]
    return frame.assign(diagnosis=diagnosis, **{TRACE: random.permutation(number) / 1024.0 + 1.0})


def correct(everybody: pd.DataFrame, chosen: np.ndarray, kind: str, random: np.random.Generator) -> None:
    """Change one protected variable of the chosen units."""
    names = list(QUASI_IDENTIFIERS[kind])
    which = random.integers(0, len(names), len(chosen))
    for place, name in enumerate(names):
        corrected = chosen[which == place]
        other = random.choice(len(everybody), len(corrected))
        everybody.iloc[corrected, everybody.columns.get_loc(name)] = everybody[name].to_numpy()[other]
