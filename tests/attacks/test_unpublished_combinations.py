"""Attacks on suppressed tables by readers who know more than sums.

Everybody knows that cells of a by b by c, which nobody published next to tables of a by b, b by c and a by c,
are not negative; that a section has a single branch; or each value of an earlier table by its capacity. In
the controls, the office does not consider this.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.guarantees.suppressed_table import SuppressedTable
from microguard.pipelines.tables.suppression import combinations, earlier_tables
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table import ATTACKERS, Table
from scipy import sparse
from scipy.optimize import linprog

from tests.attacks.office import specification
from tests.attacks.suppression.office import Published, SuppressingOffice, cells_of_firms

PAIRS = [["a", "b"], ["b", "c"], ["a", "c"]]
TABLE = {
    "value": "turnover",
    "decimals": 0,
    "method": "suppression",
    "attackers": ["outsider"],
    "quality": {"max_suppressed": 1.0, "max_value_suppressed": 1.0},
}


def firms(seed: int) -> pd.DataFrame:
    """Return firms in few of the combinations of three columns."""
    random = np.random.default_rng(seed)
    every = list(itertools.product("01", "012", "0123"))
    some = [every[place] for place in random.permutation(len(every))[: int(random.integers(4, 12))]]
    number = int(random.integers(15, 60))
    chosen = random.choice(len(some), number, p=random.dirichlet(np.full(len(some), 0.6)))
    frame = pd.DataFrame([some[place] for place in chosen], columns=list("abc"))
    turnover = random.lognormal(4, 1.3, number).round() + 1
    return frame.assign(turnover=turnover, firm=np.arange(number))


def chosen(frame: pd.DataFrame, tables: list[list[str]], **table: Any) -> Specification:
    """Return the specification of some tables of the firms."""
    return specification(frame, {**TABLE, "tables": tables, **table})


def narrowed(frame: pd.DataFrame, published: list[Published], known: float = 1.0) -> int:
    """Count the sensitive cells whose interval is narrower than their levels.

    Parameters
    ----------
    known : float
        Precision with which readers know the cells of the first table, as a share of their values; for a
        sensitive cell at best its levels.
    """
    finest = list(itertools.product(*(sorted(frame[name].unique()) for name in "abc")))
    rows, low, high, aims = [], [], [], []
    for number, each in enumerate(published):
        share = 1.0 if number else known
        rule, hidden = each.protected.comparison.by_rule, each.suppressed
        for row, codes in enumerate(each.cells.codes.to_dict("records")):
            value = each.cells.units[row]
            inside = np.array(
                [all(codes.get(n, "Total") in ("Total", c) for n, c in zip("abc", one, strict=True))
                 for one in finest], float)  # fmt: skip
            rows.append(inside)
            levels = min(rule.lower_protection[row], value), rule.upper_protection[row]
            low.append(value - max(share * value, levels[0]) if hidden[row] else value)
            high.append(value + max(share * value, levels[1]) if hidden[row] else value)
            if rule.sensitive[row]:
                aims.append((inside, value - levels[0], value + levels[1]))
    system = np.array(rows)
    limits = {"A_ub": np.vstack([system, -system]), "b_ub": np.concatenate([high, -np.array(low)])}
    ends = [(low, high, linprog(cell, **limits), linprog(-cell, **limits)) for cell, low, high in aims]
    assert all(least.status == most.status == 0 for _, _, least, most in ends)
    return sum(least.fun > low + 1e-3 or -most.fun < high - 1e-3 for low, high, least, most in ends)


def publish(folder: Path, frame: pd.DataFrame, releases: list[list[list[str]]]) -> list[Published]:
    """Publish some tables of the firms, one release after the other."""
    office = SuppressingOffice(folder)
    found = []
    for tables in releases:
        spec = chosen(frame, tables)
        found.append(office.publish(cells_of_firms(frame, spec), spec))
        assert found[-1].broken == []
    return found


@pytest.mark.parametrize("seed", [7, 67])
def test_combinations_that_no_table_has_narrow_no_interval(tmp_path, monkeypatch, seed):
    frame = firms(seed)
    assert narrowed(frame, publish(tmp_path / "office", frame, [PAIRS])) == 0
    monkeypatch.setattr(earlier_tables, "combinations_of", lambda *_: None)
    assert narrowed(frame, publish(tmp_path / "control", frame, [PAIRS])) > 0


def test_manifest_states_that_combinations_were_not_counted_if_there_are_too_many(tmp_path, monkeypatch):
    frame = firms(7)
    monkeypatch.setattr(combinations, "MOST_WORK", 1)
    (published,) = publish(tmp_path, frame, [PAIRS])
    assert published.manifest["method"]["combinations"] == "not counted"


def test_manifest_states_that_contributors_may_know_more_of_combinations(tmp_path):
    frame = firms(7)
    spec = chosen(frame, PAIRS, attackers=list(ATTACKERS))
    published = SuppressingOffice(tmp_path).publish(cells_of_firms(frame, spec), spec)
    assert published.broken == []
    assert published.manifest["method"]["combinations"] == "counted for readers"
    (limits, *_) = SuppressedTable.from_manifest(published.manifest).limits
    assert "not that a contributor knows own amounts in these cells" in limits


def test_columns_of_two_hierarchies_with_one_finest_column_form_a_cycle():
    tables = [["nace", "size"], ["tech", "region"], ["region", "size"]]
    alone = Table(value="v", tables=tables)
    both = Table(value="v", tables=tables, hierarchies=[["section", "nace"], ["tech", "nace"]])
    assert not combinations.may_form_cycle(alone, [])
    assert combinations.may_form_cycle(both, [])


def test_combinations_have_small_sums_exactly_next_to_large_ones():
    sums = sparse.csr_matrix(np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 1.0, 0.0]]))
    totals = np.array([3e11, 7.0, 4.0])
    assert sums @ combinations._table_with(sums, totals) == pytest.approx(totals, rel=1e-9)


def test_later_table_leaves_intervals_to_readers_who_know_more_by_the_earlier_one(tmp_path):
    random = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "a": random.integers(0, 4, 40).astype(str),
            "b": random.choice(list("012"), 40, p=[0.6, 0.3, 0.1]),
            "c": random.integers(0, 2, 40).astype(str),
            "turnover": random.lognormal(4, 1, 40).round() + 1,
            "firm": np.arange(40),
        }
    )
    office, found = SuppressingOffice(tmp_path), []
    for table, capacity in ([["a", "b"]], 40), ([["a", "b", "c"]], 100):
        spec = chosen(frame, table, capacity=capacity)
        found.append(office.publish(cells_of_firms(frame, spec), spec))
        assert found[-1].broken == []
    assert narrowed(frame, found, known=0.4) == 0


@pytest.mark.parametrize("seed", [0, 2, 6])
def test_cells_of_a_section_with_a_single_branch_have_one_status(tmp_path, monkeypatch, seed):
    """The control does not know that section 0 and branch 0 are the same firms."""
    random = np.random.default_rng(seed)
    section = random.integers(0, 5, 60)
    frame = pd.DataFrame(
        {
            "section": section.astype(str),
            "branch": np.where(section == 0, 0, random.integers(1, 4, 60)).astype(str),
            "region": random.choice(list("nsw"), 60, p=[0.6, 0.3, 0.1]),
            "turnover": random.lognormal(6, 1.2, 60).round() + 1,
            "firm": np.arange(60),
        }
    )
    tables = [["section", "region"], ["branch", "region"]]
    spec = specification(frame, {**TABLE, "attackers": ATTACKERS, "tables": tables})

    def statuses(folder: Path) -> int:
        (published,) = [SuppressingOffice(folder).publish(cells_of_firms(frame, spec), spec)]
        assert published.broken == []
        codes = published.cells.codes.assign(hidden=published.suppressed)
        of_section = codes[codes["section"] == "0"].set_index("region")["hidden"]
        of_branch = codes[codes["branch"] == "0"].set_index("region")["hidden"]
        return int((of_section != of_branch[of_section.index]).sum())

    assert statuses(tmp_path / "office") == 0
    monkeypatch.setattr(earlier_tables, "same_cells", lambda *_: sparse.csr_matrix((0, 0)))
    assert statuses(tmp_path / "control") > 0
