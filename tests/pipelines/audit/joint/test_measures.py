"""Linear relations among the measures of tables are recognised by the true values of their cells."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.audit.joint.measures import relations


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
