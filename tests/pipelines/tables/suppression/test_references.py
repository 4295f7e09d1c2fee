"""Every reference table with suppressed cells: no sensitive cell is too narrow to any attacker."""

from __future__ import annotations

import itertools

import pandas as pd
import pytest
from microguard.schemas.errors import InputRejected

from tests.attacks.suppressing_office import SuppressingOffice, cells_of_finished, of_finished
from tests.reference import reference_file

RULES = {"dominance": {"n": 1, "k": 85.0}}


def parents(name: str, *columns: str, codes: pd.Series) -> dict[str, str]:
    """Return the parent of each code that a table has, by a file of nested codes."""
    nested = pd.read_csv(reference_file(name), dtype=str)
    pairs = {
        lower: upper
        for above, below in itertools.pairwise(columns)
        for upper, lower in zip(nested[above], nested[below], strict=True)
        if lower != upper
    }
    return {code: parent for code, parent in pairs.items() if code in set(codes)}


def published(folder, frame, table):
    """Publish a finished table, its totals summed anew; return what was published."""
    spec = of_finished(frame, {"tolerance": 1e9, "effort": "fast", **table})
    return SuppressingOffice(folder).publish(cells_of_finished(frame, spec.table), spec)


@pytest.mark.long
@pytest.mark.parametrize("costs", ["number", "value"])
def test_turnover_by_activity_and_size_is_protected_from_every_attacker(tmp_path, costs):
    names = {"activity": str, "size": str}
    frame = pd.read_csv(reference_file("turnover_activity_size.csv"), dtype=names)
    nested = parents("business_survey.csv", "a10", "a21", "a88", codes=frame["activity"])
    keys = {"value": "tot", "contributors": "n_obs", "largest": ["max"], "decimals": 1, "costs": costs}
    table = published(tmp_path, frame, {**keys, **RULES, "tables": [["activity", "size"]],
                                        "parents": {"activity": nested}})  # fmt: skip
    assert table.broken == []


@pytest.mark.long
def test_turnover_by_activity_region_and_size_is_protected_from_every_attacker(tmp_path):
    names = {"ACTIVITY": str, "NUTS": str, "SIZE": str}
    frame = pd.read_csv(reference_file("tables/turnover_act_nuts_size.csv"), dtype=names)
    frame["NUTS"] = frame["NUTS"].replace("Total_EAST", "Total")
    table = {
        "value": "TOT", "contributors": "N_OBS", "largest": ["MAX"], "decimals": 1, **RULES,
        "tables": [["ACTIVITY", "NUTS", "SIZE"]],
        "parents": {
            "ACTIVITY": parents(
                "tables/activity_corr_table.csv", "A10", "A21", "A88", codes=frame["ACTIVITY"]
            ),
            "NUTS": parents("tables/nuts23_fr_corr_table.csv", "NUTS2", "NUTS3", codes=frame["NUTS"]),
        },
    }  # fmt: skip
    assert published(tmp_path, frame, table).broken == []


def pizzas(**table):
    """The table of pizzas in four dimensions, and its keys."""
    frame = pd.read_csv(reference_file("tables/datatest1.csv"), dtype=str)
    for name in ("pizzas_tot", "pizzas_max", "nb_obs_rnd"):
        frame[name] = frame[name].astype(float)
    dimensions = ["treff", "cj", "type_distrib", "A10"]
    return frame, {"value": "pizzas_tot", "contributors": "nb_obs_rnd", "decimals": 2,
                   "tables": [dimensions], **table}  # fmt: skip


OWN = {"status": "is_secret_prim", "statuses": {"TRUE": "sensitive", "FALSE": "safe"}}


def test_sensitive_zeros_of_a_reference_table_are_refused_without_a_level(tmp_path):
    with pytest.raises(InputRejected, match=r"10 cell\(s\) declared sensitive .* have no protection level"):
        published(tmp_path, *pizzas(**OWN))


@pytest.mark.long
@pytest.mark.parametrize("rule", [RULES | {"largest": ["pizzas_max"]}, OWN | {"zero_safety_range": 10.0}])
def test_a_reference_table_of_four_dimensions_is_protected_from_every_attacker(tmp_path, rule):
    assert published(tmp_path, *pizzas(**rule)).broken == []
