"""Tests of weights, orders and trees: accepted if records are clustered by them, else refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from microguard.schemas.errors import SpecificationError
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.read import build_specification

NOMINAL = {"role": "quasi_identifier", "kind": "nominal"}
ORDINAL = {"role": "quasi_identifier", "kind": "ordinal", "order": ["young", "adult", "old"]}
TREE = {"role": "quasi_identifier", "kind": "hierarchical", "hierarchy": "nace.csv"}
BANDED = {"role": "quasi_identifier", "kind": "ordinal", "bands": [18, 65]}


def build(variables: dict[str, dict[str, Any]], **method: Any) -> Specification:
    content = {
        "release": {"name": "persons", "k": 3},
        "input": {"path": "records.parquet"},
        "variables": variables,
        "method": method,
        "publish": {"path": "lake", "evidence": "evidence"},
    }
    return build_specification(content, Path("/nowhere"))


def strategy(variables: dict[str, dict[str, Any]], **method: Any) -> str:
    specification = build(variables, **method)
    return specification.strategy(specification.clusterings[0])


def test_nominal_variables_of_unequal_weights_are_protected_as_key_combinations() -> None:
    assert strategy({"sex": NOMINAL | {"variable_weight": 2.0}, "age": NOMINAL}) == "frequency"
    assert strategy({"sex": NOMINAL | {"variable_weight": 2.0}, "age": NOMINAL}, algorithm="own-eee")
    bounds = {"max_absolute_error": {"1": 5}}
    assert strategy({"sex": NOMINAL | {"variable_weight": 2.0}, "age": NOMINAL}, control_tables=bounds)


def test_ordinal_and_hierarchical_variables_are_categories() -> None:
    specification = build({"sex": NOMINAL, "age": ORDINAL})
    assert specification.strategy(specification.clusterings[0]) == "frequency"
    assert specification.kinds() == "nominal"
    assert specification.control_tables == (("sex",), ("age",), ("sex", "age"))
    assert strategy({"age": ORDINAL}, representative="medoid", algorithm="mdav") == "microaggregation"
    assert strategy({"age": BANDED}) == "frequency"
    assert strategy({"sex": NOMINAL, "activity": TREE}, algorithm="own-eee") == "frequency"
    assert build({"sex": NOMINAL, "activity": TREE}).nominal == ("sex", "activity")


@pytest.mark.parametrize("weight", [0, 0.0, -1.0, float("inf"), float("nan"), 1e7, "2", True])
def test_weight_is_a_finite_number_above_zero(weight: Any) -> None:
    with pytest.raises(SpecificationError, match="variable_weight"):
        build({"sex": NOMINAL | {"variable_weight": weight}})


@pytest.mark.parametrize(
    ("variables", "method", "named"),
    [
        (
            {"sex": NOMINAL, "hours": {"role": "other", "variable_weight": 2.0}},
            {},
            r"hours.variable_weight: found 2.0, but this key is not applicable, because only quasi",
        ),
        (
            {"sex": NOMINAL | {"variable_weight": 2.0}, "age": NOMINAL},
            {"name": "safe"},
            r"sex.variable_weight: found 2.0, allowed: 1 with SAFE",
        ),
    ],
)
def test_weight_that_would_be_ignored_is_refused(
    variables: dict[str, dict[str, Any]], method: dict[str, Any], named: str
) -> None:
    with pytest.raises(SpecificationError, match=named):
        build(variables, **method)


@pytest.mark.parametrize(
    ("variables", "method", "named"),
    [
        ({"age": {"role": "quasi_identifier", "kind": "ordinal"}}, {}, "age.order: .*lowest first"),
        ({"age": ORDINAL | {"order": ["old"]}}, {}, "age.order: .*at least two categories"),
        ({"age": ORDINAL | {"order": ["old", "young", "old"]}}, {}, "age.order: .*each once"),
        ({"age": ORDINAL | {"order": []}}, {}, "age.order: .*at least two categories"),
        ({"age": ORDINAL | {"kind": "nominal"}}, {}, 'age.order: .*unless kind is "ordinal"'),
        ({"age": BANDED | {"order": ["young", "old"]}}, {}, "age.order: .*not applicable next to bands"),
        ({"sex": NOMINAL, "age": ORDINAL | {"role": "sensitive"}}, {}, "age.kind: .*unless role"),
        ({"sex": NOMINAL, "age": ORDINAL}, {"name": "safe"}, "age.kind: .*nominal with method safe"),
        (
            {"a": {"role": "quasi_identifier", "kind": "hierarchical"}},
            {},
            "a.hierarchy: .*one column per level",
        ),
        ({"a": TREE | {"bands": [1, 2]}}, {}, "a.hierarchy: .*without bands"),
        ({"sex": NOMINAL, "a": TREE | {"role": "other"}}, {}, "a.kind: .*unless role"),
        ({"sex": NOMINAL, "a": TREE}, {"name": "safe"}, "a.kind: .*nominal with method safe"),
        ({"sex": NOMINAL, "age": ORDINAL | {"costs": "c.csv"}}, {}, 'age.costs: .*kind "nominal"'),
        ({"sex": NOMINAL, "a": {"role": "other", "costs": "c.csv"}}, {}, "a.costs: .*role is quasi_ident"),
        ({"sex": NOMINAL | {"costs": "c.csv"}}, {"name": "safe"}, "sex.costs: .*no distances"),
    ],
)
def test_order_or_hierarchy_that_would_be_ignored_is_refused(
    variables: dict[str, dict[str, Any]], method: dict[str, Any], named: str
) -> None:
    with pytest.raises(SpecificationError, match=named):
        build(variables, **method)
