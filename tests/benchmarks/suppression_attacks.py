"""Attacks on the published files of suppressed tables, by independent linear programs.

The constraints are built from the codes of the files. Sensitive cells and levels are columns of the
reference tables. The interval of a sensitive cell is too narrow if it does not contain the levels.
Controls publish one secondary cell: the attack must then find intervals that are too narrow.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tests.attacks.suppression.files import (
    Attack,
    Cell,
    Contributor,
    PublishedRows,
    Secret,
    contributors_of_numbers,
    key,
)
from tests.attacks.suppression.references import OWN, RULES, pizzas, published, regional, secrets_of
from tests.benchmarks.parts import Parts, say
from tests.benchmarks.table import Table
from tests.benchmarks.tabular.suppression_page import Plan, measure_rows
from tests.reference import REFERENCE_FOLDER

#: Kinds of attackers that the office considers.
READERS, EVERYBODY = ["outsider"], ["outsider", "single", "pair", "unit"]
TABLES: dict[str, Callable[..., tuple[pd.DataFrame, dict[str, Any]]]] = {
    "pizzas, dominance": lambda **keys: pizzas(**RULES, largest=["pizzas_max"], **keys),
    "pizzas, own status": lambda **keys: pizzas(**OWN, zero_safety_range=10.0, **keys),
    "activity x region x size": regional,
}
#: Dominance (1, 85) and fewer than 3 contributors, with levels of 20 %: the rules of the tables.
SHARE, LEAST, PERCENT = 0.85, 3, 20
#: Rows that take minutes are measured last.
LONG = ("activity x region x size, outsider", "activity x region x size, all attackers")
#: Secondary cells that are published again, one at a time.
OPENED = 50
_SEED = 1


@dataclass(frozen=True)
class Attacked:
    """Input of an attack: the files, and the knowledge of the office and of contributors."""

    frame: pd.DataFrame
    parents: Mapping[str, Mapping[str, str]]
    secrets: Mapping[Cell, Secret]
    contributors: list[Contributor]


def run(quick: bool = False) -> Iterator[Table]:
    """Publish reference tables and attack their files; finished parts are not computed again.

    A full run writes each row into the page of the manual as soon as it is measured.
    """
    if not (REFERENCE_FOLDER / "tables/datatest1.csv").is_file():
        return
    parts = Parts("suppression_attacks", rooms=("sdc/suppression", "tests/attacks"))
    columns = (
        "table",
        "protected from",
        "cells",
        "sensitive",
        "suppressed",
        "contributors who attack",
        "narrow to outsider",
        "to the only contributor",
        "to pairs",
        "to one of two",
        "controls caught",
        "published, CPU s",
        "attacked, CPU s",
    )
    rows = {
        f"{name}, {'outsider' if heeded is READERS else 'all attackers'}": partial(_row, parts, name, heeded)
        for name in list(TABLES)[: 1 if quick else None]
        for heeded in ((READERS,) if quick else (READERS, EVERYBODY))
    }
    plan = Plan("Published files under attack by programs of their own", columns, rows)
    yield from measure_rows([plan], parts, "suppression_attacks", LONG, write=not quick)


def _row(parts: Parts, name: str, heeded: list[str]) -> tuple[object, ...]:
    everybody = heeded is EVERYBODY
    who = "all attackers" if everybody else "outsider"
    attacked, spent = parts.answer(f"{name}, {who}, published", lambda: office(name, heeded))
    found, seconds = parts.answer(f"{name}, {who}, attacked", lambda: attack(attacked))
    say(f"{name}, {who}: {found}")
    assert sum(found.values() if everybody else [found["outsider"]]) == 0, f"{name}, {who}: {found}"
    caught, _ = parts.answer(f"{name}, {who}, control", lambda: control(attacked, everybody))
    assert caught > 0, "the attack must narrow a cell if a secondary cell is published"
    return (
        name,
        who,
        len(attacked.secrets),
        sum(secret.upper > 0 for secret in attacked.secrets.values()),
        int(attacked.frame["status"].eq("suppressed").sum()),
        len(attacked.contributors),
        *(found.get(kind, 0) for kind in ("outsider", "single", "pair", "member")),
        f"{caught} of {OPENED}",
        spent,
        seconds,
    )


def office(name: str, heeded: list[str]) -> Attacked:
    """Publish a table and return its files, with levels by the columns of the input."""
    frame, keys = TABLES[name](attackers=heeded)
    with tempfile.TemporaryDirectory() as folder:
        table = published(Path(folder), frame, keys)
        rows = table.frame()
    assert table.broken == []
    scale, columns = 10.0 ** keys["decimals"], keys["tables"][0]
    cells = [key(row) for row in frame[columns].astype(str).to_dict("records")]
    numbers = dict(zip(cells, frame[keys["contributors"]].astype(int), strict=True))
    largest = None
    if "largest" in keys:
        largest = dict(zip(cells, frame[keys["largest"][0]].astype(float) * scale, strict=True))
    else:
        declared = dict(zip(cells, frame[keys["status"]].eq("TRUE"), strict=True))
    secrets = secrets_of([table])
    assert set(cells) == set(secrets)
    levels: dict[Cell, Secret] = {}
    for cell, given in secrets.items():
        if largest is None:
            level = given.upper if declared[cell] else 0.0
            assert level > 0 or not declared[cell]
        else:
            size = abs(given.value)
            few = 0 < numbers[cell] < LEAST
            level = max(PERCENT / 100 * size if few else 0.0, largest[cell] / SHARE - size)
        if level > 0:
            levels[cell] = Secret(given.value, min(level, given.fall), level, given.fall, given.rise)
        else:
            levels[cell] = Secret(given.value, 0.0, 0.0, given.fall, given.rise)
    values = {cell: secret.value for cell, secret in secrets.items()}
    parents = keys.get("parents", {})
    return Attacked(rows, parents, levels, contributors_of_numbers(numbers, values, parents, largest))


def attack(attacked: Attacked) -> dict[str, int]:
    """Return the number of sensitive cells that attackers of each kind narrow."""
    rows = PublishedRows([attacked.frame], attacked.parents)
    narrow = Attack(rows, attacked.secrets, attacked.contributors).narrow()
    return {kind: len(cells) for kind, cells in narrow.items()}


def control(attacked: Attacked, contributors: bool) -> int:
    """Return how many secondary cells, published one at a time, narrow a cell of their constraints."""
    rows = PublishedRows([attacked.frame], attacked.parents)
    secondary = [
        place
        for place in np.flatnonzero(rows.hidden).tolist()
        if attacked.secrets[rows.cells[place]].upper == 0
    ]
    caught = 0
    for place in np.random.default_rng(_SEED).permutation(secondary)[:OPENED].tolist():
        opened = copy.copy(rows)
        opened.hidden = rows.hidden.copy()
        opened.hidden[place] = False
        lines = rows.lines[rows.lines[:, [place]].nonzero()[0]]
        near = {rows.cells[each] for each in np.unique(lines.indices).tolist()}
        attackers = attacked.contributors if contributors else ()
        caught += any(Attack(opened, attacked.secrets, attackers).narrow(near).values())
    return caught
