"""Attack on suppressed cells by readers, and by a contributor with an own value, on the public files.

The control suppresses only sensitive cells, or protects from readers only.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.methods.suppression import CellSuppression

from tests.attacks.office import specification
from tests.attacks.suppression.cells import intervals
from tests.attacks.suppression.office import Published, SuppressingOffice, cells_of_firms


def firms(seed: int) -> pd.DataFrame:
    """Return firms of six activities and four regions; some cells have one or two firms."""
    random = np.random.default_rng(seed)
    activity = random.choice(list("ABCDEF"), 90, p=[0.35, 0.25, 0.2, 0.1, 0.06, 0.04])
    return pd.DataFrame(
        {
            "activity": activity,
            "region": random.choice(["n", "e", "s", "w"], 90),
            "turnover": random.lognormal(4, 1, 90).round(0) + 1,
            "firm": np.arange(90),
        }
    )


TABLE = {"value": "turnover", "tables": [["activity", "region"]], "decimals": 0, "method": "suppression"}


def chosen(frame, **table):
    """Return the specification of the table of activities by regions."""
    return specification(frame, {**TABLE, **table})


def learnt(published: Published, *, contributors: bool) -> int:
    """Count sensitive cells that an attacker narrows below their levels; contributors know their own cell."""
    comparison = published.protected.comparison
    codes = [tuple(row) for row in published.cells.codes.to_numpy()]
    true = dict(zip(codes, published.cells.units, strict=True))
    rule = comparison.by_rule
    largest = {
        cell: value + room for (cell, value), room in zip(true.items(), rule.upper_capacity, strict=True)
    }
    hidden = [cell for cell, gone in zip(codes, published.suppressed, strict=True) if gone]
    alone = dict(zip(codes, published.cells.contributors == 1, strict=True))
    attackers = [{}] if not contributors else [{cell: true[cell]} for cell in hidden if alone[cell]]
    found = set()
    for known in attackers:
        ends = intervals(published.frame(), largest, known)
        for row in np.flatnonzero(rule.sensitive & published.suppressed):
            cell = codes[row]
            # a total whose only other part is the attacker's
            same = [own for own in known if true[own] == true[cell]]
            low, high = ends[cell]
            if not same and (
                low > true[cell] - rule.lower_protection[row] + 1e-6
                or high < true[cell] + rule.upper_protection[row] - 1e-6
            ):
                found.add(cell)
    return len(found)


def sensitive_alone(self, problem, key):
    """Method that suppresses only sensitive cells."""
    return np.where(problem.table.sensitive, np.nan, problem.table.values)


@pytest.mark.parametrize("seed", [1, 2])
def test_readers_compute_sensitive_cells_only_without_secondary_suppression(tmp_path, monkeypatch, seed):
    frame = firms(seed)
    spec = chosen(frame)
    safe = SuppressingOffice(tmp_path / "safe").publish(cells_of_firms(frame, spec), spec)
    assert safe.broken == []
    assert learnt(safe, contributors=False) == 0
    monkeypatch.setattr(CellSuppression, "protect", sensitive_alone)
    control = SuppressingOffice(tmp_path / "control").publish(cells_of_firms(frame, spec), spec)
    assert learnt(control, contributors=False) > 0
    assert any(each.startswith("intervals_too_narrow") for each in control.broken)


def test_contributor_computes_other_values_only_if_suppression_protects_from_readers_alone(tmp_path):
    narrowed = 0
    for seed in range(3):
        frame = firms(seed)
        for attackers in (["outsider"], ["outsider", "single", "pair", "unit"]):
            spec = chosen(frame, attackers=attackers)
            office = SuppressingOffice(tmp_path / f"{seed} {len(attackers)}")
            published = office.publish(cells_of_firms(frame, spec), spec)
            assert published.broken == []
            if len(attackers) == 1:
                narrowed += learnt(published, contributors=True)
            else:
                assert learnt(published, contributors=True) == 0
    assert narrowed > 0


def test_public_files_contain_codes_value_and_status_and_do_not_mark_sensitive_cells(tmp_path):
    frame = firms(3)
    spec = chosen(frame)
    published = SuppressingOffice(tmp_path).publish(cells_of_firms(frame, spec), spec)
    rows = published.frame()
    hidden = rows[rows["status"] == "suppressed"]
    assert list(rows.columns) == ["activity", "region", "turnover", "status"]
    assert set(rows["status"]) == {"published", "suppressed"}
    assert hidden["turnover"].isna().all()
    assert 0 < int(published.protected.comparison.by_rule.sensitive.sum()) < len(hidden)
    assert "sensitive" not in str(published.layout)
