"""Tests of linear relations among measures of tables: recognised by original values of cells."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.audit.joint.measures import relations


def periods_of(**periods):
    """Return one measure with the values of eight cells in several periods."""
    parts = [built_of(amount=values)["amount"] for values in periods.values()]
    starts = range(0, 8 * len(parts), 8)
    cells = [
        each.cells.assign(period=name.replace("_", "-"), unknown=each.cells["unknown"] + start)
        for name, each, start in zip(periods, parts, starts, strict=True)
    ]
    truth = np.concatenate([each.system.truth for each in parts])
    return {
        "amount": SimpleNamespace(system=SimpleNamespace(truth=truth, whole=False), cells=pd.concat(cells))
    }


def built_of(**measures):
    """Return measures with the values of eight cells of one period."""
    labels = [f"branch={i}\x1f" for i in range(8)]
    return {
        name: SimpleNamespace(
            system=SimpleNamespace(truth=np.asarray(values, float), whole=name == "number"),
            cells=pd.DataFrame({"period": "2026", "label": labels, "unknown": range(8)}),
        )
        for name, values in measures.items()
    }


@pytest.mark.parametrize("seed", range(3))
def test_relations_of_two_three_and_four_measures_are_found_with_their_coefficients(seed):
    random = np.random.default_rng(seed)
    a, b, c, d, other = np.round(random.lognormal(6, 1, (5, 8)))
    found = list(relations(built_of(a=a, b=b, profit=a - b, other=other, dollars=1.1 * other, c=c, d=d,
                                    sum=c + 2 * d - other)))  # fmt: skip
    values = {"a": a, "b": b, "profit": a - b, "other": other, "dollars": 1.1 * other, "c": c, "d": d,
              "sum": c + 2 * d - other}  # fmt: skip
    names = [each.measures for each in found]
    assert {period for each in found for _, period in each.terms} == {"2026"}
    assert names[:2] == [("dollars", "other"), ("a", "b", "profit")]
    assert set(names[2:]) == {("c", "d", "other", "sum"), ("c", "d", "dollars", "sum")}
    for each in found:
        total = sum(x * values[name] for x, name in zip(each.coefficients, each.measures, strict=True))
        assert np.abs(total).max() < 1e-6


@pytest.mark.parametrize("seed", range(20))
def test_unrelated_measures_and_counts_have_no_relation(seed):
    random = np.random.default_rng(seed)
    a, b, c, d = np.round(random.lognormal(6, 1, (4, 8)))
    assert list(relations(built_of(a=a, b=b, c=c, d=d, number=a - b))) == []
    assert list(relations(built_of(a=a, b=b, c=a - b + (np.arange(8) == seed % 8)))) == []


def test_measure_relations_include_a_year_as_the_sum_of_months_and_half_years_of_quarters():
    random = np.random.default_rng(1)
    months = {f"y2026_{i:02d}": np.round(random.lognormal(6, 1, 8)) for i in range(1, 13)}
    (found,) = relations(periods_of(y2026=sum(months.values()), **months))
    assert len(found.terms) == 13
    assert found.coefficients.tolist() == [1] + [-1] * 12
    first, second = months["y2026_01"], months["y2026_02"]
    (found,) = relations(periods_of(q1=first, q2=second, h1=first + second))
    assert found.terms == (("amount", "h1"), ("amount", "q1"), ("amount", "q2"))
    assert list(relations(periods_of(**months))) == []
    assert list(relations(periods_of(a=first, b=first))) == []  # these cells are unchanged
    assert list(relations(periods_of(y2026=sum(months.values()) + 1, **months))) == []
