"""Tests that the attack on a series finds constructed disclosures, and none with permanent classes."""

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
    """Write public folders of updates, each a list of classes, and return the disclosures of the attack."""
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


def test_attack_imports_no_code_of_microguard():
    for module in (program, public_copies, equations):
        tree = ast.parse(Path(module.__file__).read_text())
        names = [each.module for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)]
        names += [n.name for each in ast.walk(tree) if isinstance(each, ast.Import) for n in each.names]
        ours = {
            name for name in names if name.split(".")[0] in ("pipelines", "sdc", "schemas", "jobs", "tests")
        }
        assert ours <= {"tests.benchmarks.registers.copies", "tests.benchmarks.registers.equations"}


def test_attack_computes_the_income_of_a_removed_unit_from_two_totals(tmp_path):
    nights = [[[1, 2, 3], [4, 5, 6, 7]], [[1, 4, 5], [2, 3, 6]]]
    (row,) = attack(copies(tmp_path, nights, k=3, roles=ROLES)).removed.to_dict("records")
    assert (row["variable"], row["rows"]) == ("income", 1)
    assert row["value"] == pytest.approx(INCOME[7], abs=7 / 2)


def test_attack_isolates_matched_rows_by_intersecting_classes(tmp_path):
    disclosures = attack(copies(tmp_path, [[[1, 2], [3, 4]], [[1, 3], [2, 4]]]))
    assert (disclosures.smallest, disclosures.below_k) == (1, 4)
    assert len(disclosures.values) == 0  # sums of two pairs each leave one degree of freedom


def test_attack_solves_three_partitions_of_four_rows(tmp_path):
    disclosures = attack(copies(tmp_path, [[[1, 2], [3, 4]], [[1, 3], [2, 4]], [[1, 4], [2, 3]]]))
    told = dict(zip(disclosures.values["weight"], disclosures.values["value"], strict=True))
    assert told == {1 + unit / 8: pytest.approx(INCOME[unit], rel=0.01) for unit in (1, 2, 3, 4)}


def test_attack_claims_nothing_for_an_inconsistent_system(tmp_path):
    nights = [[[1, 2], [3, 4]], [[1, 3], [2, 4]], [[1, 4], [2, 3]]]
    disclosures = attack(copies(tmp_path, nights, income={2: {4: 7700.0}}))
    assert len(disclosures.values) == 0
    assert disclosures.below_k == 4


def test_attack_finds_the_single_common_illness_of_classes(tmp_path):
    disclosures = attack(copies(tmp_path, [[[1, 2], [3, 4]], [[1, 4], [3, 2]]]))
    assert disclosures.one_value == 2  # {a, b} and {a, c} have only a in common, in rows 1 and 3


def test_attack_finds_an_exit_of_a_class_without_matched_rows(tmp_path):
    disclosures = attack(copies(tmp_path, [[[1, 2, 3], [4, 5, 6]], [[1, 2, 3], [5, 6]]], roles=ROLES, k=3))
    assert disclosures.below_k > 0


@pytest.mark.parametrize("roles", [ROLES, TRACED])
def test_attack_finds_nothing_for_classes_published_and_suppressed_as_a_whole(tmp_path, roles):
    nights = [[[1, 2, 3], [4, 5]], [[1, 2, 3], [4, 5], [6, 7]], [[1, 2, 3], [6, 7]]]
    disclosures = attack(copies(tmp_path, nights, roles=roles))
    assert disclosures.nothing, disclosures
    assert disclosures.smallest == 2
