"""Tests of reference tables with suppressed cells: no attacker's interval of a sensitive cell is too narrow.

The guarantee counts the intervals. An attack program that reads the rows of the files counts them again,
except for turnover by region and the table of four dimensions: publishing these takes minutes.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest
from microguard.schemas.errors import InputRejected

from tests.attacks.office import specification
from tests.attacks.suppression.files import (
    Attack,
    PublishedRows,
    contributors_of_numbers,
    contributors_of_records,
    key,
)
from tests.attacks.suppression.office import SuppressingOffice, cells_of_firms
from tests.attacks.suppression.references import OWN, RULES, parents, pizzas, published, regional, secrets_of
from tests.attacks.test_suppressed_cells import chosen, firms
from tests.pipelines.tables.suppression.test_suppression import tau_argus_table
from tests.reference import reference_file


def attacked(tables, parents, attackers):
    """Count narrowed cells by kind of attacker: with the files, and with the same files without secondary
    cells.
    """
    secrets = secrets_of(tables)
    frames = [table.frame() for table in tables]
    control = []
    for frame in frames:
        *columns, value, _ = frame.columns
        cells = [key({name: str(row[name]) for name in columns}) for row in frame.to_dict("records")]
        safe = np.array([secrets[cell].lower == secrets[cell].upper == 0 for cell in cells])
        shown = np.array([secrets[cell].value for cell in cells])
        control.append(frame.assign(**{value: np.where(safe, shown, np.nan)}))
    return [Attack(PublishedRows(each, parents), secrets, attackers).narrow() for each in (frames, control)]


def check(tables, parents=MappingProxyType({}), attackers=None):
    """Assert that no attacker narrows a sensitive cell, and that one does without secondary cells."""
    if attackers is None:
        numbers, values = {}, {}
        for table in tables:
            for codes, number, value in zip(table.cells.codes.astype(str).to_dict("records"),
                                            table.cells.contributors, table.cells.units,
                                            strict=True):  # fmt: skip
                numbers[key(codes)], values[key(codes)] = int(number), float(value)
        attackers = contributors_of_numbers(numbers, values, parents)
    assert all(table.broken == [] for table in tables)
    now, control = attacked(tables, parents, attackers)
    assert {kind: len(cells) for kind, cells in now.items() if cells} == {}
    assert control["outsider"]


@pytest.mark.long
@pytest.mark.parametrize("costs", ["number", "value"])
def test_turnover_by_activity_and_size_is_protected_from_every_attacker(tmp_path, costs):
    names = {"activity": str, "size": str}
    frame = pd.read_csv(reference_file("turnover_activity_size.csv"), dtype=names)
    nested = parents("business_survey.csv", "a10", "a21", "a88", codes=frame["activity"])
    keys = {"value": "tot", "contributors": "n_obs", "largest": ["max"], "decimals": 1, "costs": costs}
    table = published(tmp_path, frame, {**keys, **RULES, "tables": [["activity", "size"]],
                                        "parents": {"activity": nested}})  # fmt: skip
    check([table], {"activity": nested})


@pytest.mark.long
def test_turnover_by_activity_region_and_size_is_protected_from_every_attacker(tmp_path):
    assert published(tmp_path, *regional()).broken == []


def test_sensitive_zeros_of_a_reference_table_are_refused_without_a_protection_level(tmp_path):
    with pytest.raises(InputRejected, match=r"10 cell\(s\) declared sensitive .* have no protection level"):
        published(tmp_path, *pizzas(**OWN))


@pytest.mark.long
@pytest.mark.parametrize("rule", [RULES | {"largest": ["pizzas_max"]}, OWN | {"zero_safety_range": 10.0}])
def test_reference_table_of_four_dimensions_is_protected_from_every_attacker(tmp_path, rule):
    assert published(tmp_path, *pizzas(**rule)).broken == []


@pytest.mark.parametrize(
    "rule",
    [
        {"status": "Status", "statuses": {"S": "safe", "U": "sensitive", "E": "safe"}},
        {"largest": ["Top1", "Top2"], "dominance": {"n": 1, "k": 70.0}},
    ],
)
def test_reference_table_of_tau_argus_is_protected_from_every_attacker(tmp_path, rule):
    cells, spec = tau_argus_table(**rule)
    published = SuppressingOffice(tmp_path).publish(cells, spec)
    check([published], spec.table.parents)
    assert published.protected.comparison.by_rule.sensitive.sum() == 9


def test_attack_on_files_detects_disclosure_to_contributors_if_only_readers_were_considered(tmp_path):
    frame = firms(0)
    records = frame.assign(unit=frame["firm"].astype(str))
    known = contributors_of_records(records, ["activity", "region"], "turnover", {})
    learnt = []
    for heeded in (["outsider"], ["outsider", "single", "pair", "unit"]):
        spec = chosen(frame, attackers=heeded)
        office = SuppressingOffice(tmp_path / f"{len(heeded)}")
        now, _ = attacked([office.publish(cells_of_firms(frame, spec), spec)], {}, known)
        assert not now["outsider"]
        learnt.append(len(now["single"] | now["pair"] | now["unit"]))
    assert learnt[0] > 0 == learnt[1]


@pytest.mark.long
def test_microdata_of_tau_argus_are_protected_from_every_contributor_with_an_earlier_table(tmp_path):
    names = ["Sex", "Age", "HighIncome", "turnover", "Weight", "Key"]
    path = reference_file("tauargus/cellkey/Magnitude/microdata.csv")
    frame = pd.read_csv(path, sep=";", names=names, dtype=dict.fromkeys(names[:3], str))
    frame["unit"] = frame.index.astype(str)
    # a small sample of the records, so that cells have few contributors
    frame = frame.iloc[:60].drop(columns=["Weight", "Key"]).reset_index(drop=True)
    frame["firm"] = np.arange(len(frame))
    office, tables = SuppressingOffice(tmp_path), []
    for name, columns in (("first", ["Sex", "Age"]), ("second", ["Sex", "Age", "HighIncome"])):
        keys = {"value": "turnover", "tables": [columns], "decimals": 0, "method": "suppression"}
        spec = specification(frame.drop(columns="unit"), {**keys, "p_percent": 10}, name=name, source="s")
        tables.append(office.publish(cells_of_firms(frame, spec), spec))
    check(tables, attackers=contributors_of_records(frame, names[:3], "turnover", {}))


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        pytest.param({"minimum_frequency": 200}, "savings", id="count-savings"),
        pytest.param({"minimum_frequency": 200}, "high_income", id="count-high_income"),
        pytest.param({"dominance": {"n": 2, "k": 4.0}}, "high_income", id="share-high_income"),
        # 40,000 linear programs, and neither another rule nor another variable than above
        pytest.param(
            {"dominance": {"n": 2, "k": 4.0}}, "savings", id="share-savings", marks=pytest.mark.long
        ),
    ],
)
def test_microdata_of_tau_argus_are_published_if_protection_levels_exceed_values(tmp_path, rule, value):
    names = ["sex", "age", "high_income", "savings", "weight", "key"]
    path = reference_file("tauargus/cellkey/Magnitude/microdata.csv")
    records = pd.read_csv(path, sep=";", names=names, dtype={"sex": str, "age": str})
    frame = records[["sex", "age", value]].rename(columns={value: "turnover"})
    frame["firm"] = np.arange(len(frame))
    keys = {"value": "turnover", "tables": [["sex", "age"]], "decimals": 0, "method": "suppression"}
    spec = specification(frame, {**keys, **rule})
    table = SuppressingOffice(tmp_path).publish(cells_of_firms(frame, spec), spec)
    assert table.suppressed.any()
    assert table.broken == []
