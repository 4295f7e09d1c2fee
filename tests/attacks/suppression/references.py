"""Reference tables that offices publish with suppressed cells, and the knowledge of the office about them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from tests.attacks.suppression.files import Cell, Secret, key
from tests.attacks.suppression.office import Published, SuppressingOffice, cells_of_finished, of_finished
from tests.reference import reference_file

RULES = {"dominance": {"n": 1, "k": 85.0}}
#: Sensitive cells of the table of pizzas, by its own column.
OWN = {"status": "is_secret_prim", "statuses": {"TRUE": "sensitive", "FALSE": "safe"}}


def parents(name: str, *columns: str, codes: pd.Series) -> dict[str, str]:
    """Return the parent of each code of a table from a file of nested codes."""
    nested = pd.read_csv(reference_file(name), dtype=str)
    pairs = {
        lower: upper
        for above, below in itertools.pairwise(columns)
        for upper, lower in zip(nested[above], nested[below], strict=True)
        if lower != upper
    }
    return {code: parent for code, parent in pairs.items() if code in set(codes)}


def published(folder: Path, frame: pd.DataFrame, table: dict[str, Any]) -> Published:
    """Publish a finished table with recomputed totals; return the published cells."""
    spec = of_finished(frame, {"tolerance": 1e9, "effort": "fast", **table})
    return SuppressingOffice(folder).publish(cells_of_finished(frame, spec.table), spec)


def secrets_of(tables: Iterable[Published]) -> dict[Cell, Secret]:
    """Return the knowledge of the office about the cells of some tables, by their codes."""
    found: dict[Cell, Secret] = {}
    for table in tables:
        rule = table.protected.comparison.by_rule
        amounts = zip(
            table.cells.units, rule.lower_protection, rule.upper_protection, rule.lower_capacity,
            rule.upper_capacity, rule.sensitive, strict=True,
        )  # fmt: skip
        for codes, (value, lower, upper, fall, rise, sensitive) in zip(
            table.cells.codes.astype(str).to_dict("records"), amounts, strict=True
        ):
            # every reader knows that values are not negative
            lower = min(lower, fall) if fall == max(value, 0) else lower
            levels = (lower, upper) if sensitive else (0.0, 0.0)
            found.setdefault(key(codes), Secret(value, *levels, fall, rise))
    return found


def regional(**table: Any) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the table of turnover by activity, region and size, and its keys."""
    names = {"ACTIVITY": str, "NUTS": str, "SIZE": str}
    frame = pd.read_csv(reference_file("tables/turnover_act_nuts_size.csv"), dtype=names)
    frame["NUTS"] = frame["NUTS"].replace("Total_EAST", "Total")
    keys = {
        "value": "TOT", "contributors": "N_OBS", "largest": ["MAX"], "decimals": 1, **RULES,
        "tables": [["ACTIVITY", "NUTS", "SIZE"]],
        "parents": {
            "ACTIVITY": parents(
                "tables/activity_corr_table.csv", "A10", "A21", "A88", codes=frame["ACTIVITY"]
            ),
            "NUTS": parents("tables/nuts23_fr_corr_table.csv", "NUTS2", "NUTS3", codes=frame["NUTS"]),
        },
        **table,
    }  # fmt: skip
    return frame, keys


def pizzas(**table: Any) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the table of pizzas in four dimensions, and its keys."""
    frame = pd.read_csv(reference_file("tables/datatest1.csv"), dtype=str)
    for name in ("pizzas_tot", "pizzas_max", "nb_obs_rnd"):
        frame[name] = frame[name].astype(float)
    dimensions = ["treff", "cj", "type_distrib", "A10"]
    return frame, {"value": "pizzas_tot", "contributors": "nb_obs_rnd", "decimals": 2,
                   "tables": [dimensions], **table}  # fmt: skip
