"""The attack on a series finds by hand what it is to find, and nothing where classes stand."""

from __future__ import annotations

import ast
from pathlib import Path

import pandas as pd
import pytest

from tests.benchmarks.registers import attack as program
from tests.benchmarks.registers import copies as public_copies
from tests.benchmarks.registers import equations
from tests.benchmarks.registers.attack import attack
from tests.benchmarks.registers.copies import Copy
from tests.pipelines.audit.differencing.public_files import write_records

INCOME = {1: 1000.0, 2: 1700.0, 3: 2600.0, 4: 3100.0, 5: 4400.0, 6: 5200.0, 7: 9300.0}
ROLES = {"region": ("region", None), "income": ("quasi_identifier", "numeric")}
TRACED = ROLES | {"illness": ("sensitive", None), "weight": ("weight", None)}
ILLNESS = {1: "a", 2: "b", 3: "a", 4: "c", 5: "b", 6: "c", 7: "a"}


def copies(folder, nights, *, k=2, roles=TRACED, income=None):
    """Public folders of nights, each a list of classes, and what their reader makes of them."""
    files = []
    for number, classes in enumerate(nights):
        known = INCOME | ((income or {}).get(number, {}))
        rows = [
            {
                "region": "n",
                "income": round(sum(known[unit] for unit in members) / len(members)),
                "illness": ILLNESS[unit],
                "weight": 1.0 + unit / 8,
            }
            for members in classes
            for unit in members
        ]
        frame = pd.DataFrame(rows)[list(roles)].sample(frac=1, random_state=number, ignore_index=True)
        files.append(Copy.of(write_records(folder, f"night{number}", frame, roles, k)))
    return files


def test_what_is_attacked_lends_the_attacker_no_code():
    for module in (program, public_copies, equations):
        tree = ast.parse(Path(module.__file__).read_text())
        names = [each.module for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)]
        names += [n.name for each in ast.walk(tree) if isinstance(each, ast.Import) for n in each.names]
        ours = {
            name for name in names if name.split(".")[0] in ("pipelines", "sdc", "schemas", "jobs", "tests")
        }
        assert ours <= {"tests.benchmarks.registers.copies", "tests.benchmarks.registers.equations"}


def test_the_income_of_who_was_removed_is_the_difference_of_two_totals(tmp_path):
    nights = [[[1, 2, 3], [4, 5, 6, 7]], [[1, 4, 5], [2, 3, 6]]]
    (row,) = attack(copies(tmp_path, nights, k=3, roles=ROLES)).removed.to_dict("records")
    assert (row["variable"], row["rows"]) == ("income", 1)
    assert row["value"] == pytest.approx(INCOME[7], abs=7 / 2)


def test_rows_that_can_be_followed_are_alone_where_their_classes_meet(tmp_path):
    disclosures = attack(copies(tmp_path, [[[1, 2], [3, 4]], [[1, 3], [2, 4]]]))
    assert (disclosures.smallest, disclosures.below_k) == (1, 4)
    assert len(disclosures.values) == 0  # sums of two pairs each leave one degree of freedom


def test_three_partitions_of_four_rows_give_all_their_values(tmp_path):
    disclosures = attack(copies(tmp_path, [[[1, 2], [3, 4]], [[1, 3], [2, 4]], [[1, 4], [2, 3]]]))
    told = dict(zip(disclosures.values["weight"], disclosures.values["value"], strict=True))
    assert told == {1 + unit / 8: pytest.approx(INCOME[unit], rel=0.01) for unit in (1, 2, 3, 4)}


def test_a_system_that_contradicts_itself_is_claimed_nothing_of(tmp_path):
    nights = [[[1, 2], [3, 4]], [[1, 3], [2, 4]], [[1, 4], [2, 3]]]
    disclosures = attack(copies(tmp_path, nights, income={2: {4: 7700.0}}))
    assert len(disclosures.values) == 0
    assert disclosures.below_k == 4


def test_classes_of_several_illnesses_that_have_one_in_common_tell_it(tmp_path):
    disclosures = attack(copies(tmp_path, [[[1, 2], [3, 4]], [[1, 4], [3, 2]]]))
    assert disclosures.one_value == 2  # a and b, a and c: a of the first and third


def test_one_that_leaves_a_class_is_told_apart_although_no_row_can_be_followed(tmp_path):
    disclosures = attack(copies(tmp_path, [[[1, 2, 3], [4, 5, 6]], [[1, 2, 3], [5, 6]]], roles=ROLES, k=3))
    assert disclosures.below_k > 0


@pytest.mark.parametrize("roles", [ROLES, TRACED])
def test_classes_that_are_born_whole_and_leave_whole_give_nothing_away(tmp_path, roles):
    nights = [[[1, 2, 3], [4, 5]], [[1, 2, 3], [4, 5], [6, 7]], [[1, 2, 3], [6, 7]]]
    disclosures = attack(copies(tmp_path, nights, roles=roles))
    assert disclosures.nothing, disclosures
    assert disclosures.smallest == 2
