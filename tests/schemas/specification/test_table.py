"""Tests of the section [table]: derived properties, and refusals that name the key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from microguard.schemas.errors import SpecificationError
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.read import build_specification
from microguard.schemas.specification.table_input import (
    as_input,
    require_records,
    require_table,
    table_of,
)

TABLE = {"value": "turnover", "tables": [["a21", "region"]], "hierarchies": [["a10", "a21"]]}
CELLS = {"source": "cells", "value": "turnover", "tables": [["a21", "region"]], "contributors": "firms"}

COUNTS = {"kind": "frequency", "tables": [["a21", "region"]]}
PARTS = TABLE | {"tables": [["a21", "market"]], "parts": {"market": ["firms", "home"]}}
NOISY = COUNTS | {"method": "cell_key"}


def build(table: dict[str, Any] | None, **changes: Any) -> Specification:
    content = {
        "release": {"name": "turnover", "k": 3},
        "input": {"path": "records.parquet"},
        "variables": {
            "firm": {"role": "unit"},
            "a10": {"role": "other"},
            "a21": {"role": "other"},
            "region": {"role": "region"},
            "turnover": {"role": "sensitive", "kind": "numeric"},
            "firms": {"role": "other", "kind": "numeric"},
            "home": {"role": "other", "kind": "numeric"},
            "weight": {"role": "weight"},
        },
        "publish": {"path": "lake", "evidence": "evidence"},
    }
    return build_specification(content | ({"table": table} if table else {}) | changes, Path("/nowhere"))


def test_dimension_has_the_levels_above_it_and_none_below() -> None:
    table = table_of(build(TABLE | {"tables": [["a21"], ["a10", "region"]]}))
    assert table.levels_of("a21") == ("a10", "a21")
    assert table.levels_of("a10") == ("a10",)
    assert table.columns == ("a10", "a21", "region")


def test_column_that_records_omit_is_a_level_above_a_dimension_and_no_dimension() -> None:
    variables = {name: {"role": "other"} for name in ("region", "a21")} | {
        "a10": {"role": "identifier"},
        "turnover": {"role": "sensitive", "kind": "numeric"},
    }
    assert table_of(build(TABLE, variables=variables)).columns == ("a10", "a21", "region")
    with pytest.raises(SpecificationError, match='found "a10"'):
        build(TABLE | {"tables": [["a10", "region"]]}, variables=variables)


@pytest.mark.parametrize(
    ("changes", "digits"),
    [
        ({}, 2),
        ({"kind": "frequency", "value": None}, 0),
        ({"kind": "frequency", "value": None, "weighted": True}, 2),
        ({"decimals": 4}, 4),
    ],
    ids=["a magnitude", "a count", "a weighted count", "as specified"],
)
def test_default_number_of_published_digits_depends_on_the_summed_variable(
    changes: dict[str, Any], digits: int
) -> None:
    assert table_of(build({**TABLE, **changes})).digits == digits


def test_table_without_records_needs_no_quasi_identifier_and_protect_refuses_it() -> None:
    specification = build(TABLE)
    assert specification.quasi_identifiers == ()
    with pytest.raises(SpecificationError, match="quasi_identifier"):
        require_records(specification)
    with pytest.raises(SpecificationError, match="quasi_identifier"):
        build(None)


def test_columns_that_a_table_does_not_name_are_not_read() -> None:
    reader = as_input(build(TABLE))
    assert reader.nominal == ("a10", "a21", "region")
    assert reader.numeric == ("turnover",)
    assert set(reader.identifiers) == {"firms", "home", "weight"}
    assert (reader.unit, reader.weight) == (None, None)
    assert as_input(build(TABLE | {"weighted": True})).weight == "weight"


@pytest.mark.parametrize(
    ("table", "named"),
    [
        (TABLE | {"tables": []}, "tables"),
        (TABLE | {"tables": [["a21", "a21"]]}, "each only once in a table"),
        (TABLE | {"tables": [["a21"], ["a21"]]}, "each table once"),
        (TABLE | {"tables": [["a21", "a10"]]}, "one dimension of a hierarchy"),
        (TABLE | {"tables": [["firm"]]}, "firm"),
        (TABLE | {"tables": [["sector"]]}, "sector"),
        (TABLE | {"tables": [["turnover"]]}, "turnover"),
        (TABLE | {"hierarchies": [["a21"]]}, "two or more columns"),
        (TABLE | {"hierarchies": [["a10", "a21"], ["a10", "region"]]}, "each in one hierarchy"),
        (TABLE | {"value": "a10"}, "a10"),
        (TABLE | {"value": None}, "a column for a magnitude"),
        (TABLE | {"kind": "frequency"}, "none for a frequency"),
        (TABLE | {"kind": "frequency", "value": None, "p_percent": 10.0}, "p_percent"),
        (TABLE | {"contributors": "firms"}, "contributors"),
        (TABLE | {"parents": {"a21": {"a": "b"}}}, "parents"),
        (NOISY | {"parents": {"region": {"a": "b"}}}, "parents"),
        (NOISY | {"code_widths": {"region": [1]}}, "name the coarser codes as columns"),
        (TABLE | {"code_widths": {"a21": [1, 2]}}, "code_widths"),
        (TABLE | {"code_widths": {"region": [2, 1]}}, "ascending"),
        (TABLE | {"request": "firm"}, "request"),
        (TABLE | {"request": "a10", "waiver": "a10", "requests": {"1": 70}}, "those who request it"),
        (TABLE | {"waived": ["1"]}, "without table.waiver"),
        (CELLS | {"holding": "firm"}, "finished cells"),
        (COUNTS | {"holding": "a10"}, "not applicable to counts"),
        (TABLE | {"costs": "firms"}, "costs"),
        (TABLE | {"speed": 3}, "speed"),
        (TABLE | {"mode": "atleast"}, "at-least"),
        (TABLE | {"quality": {"min_interval": -1.0}}, "min_interval"),
        (CELLS | {"weighted": True}, "weighted"),
        (CELLS | {"contributors": None}, "a rule"),
        (CELLS | {"p_percent": 10.0}, "2 columns"),
        (CELLS | {"dominance": {"n": 1, "k": 85.0}}, "n of at most 0"),
        (CELLS | {"lower_protection": "firms"}, "upper_protection"),
        (CELLS | {"parents": {"a21": {"A": "B", "B": "A"}}}, "circle"),
        (CELLS | {"parents": {"a10": {"A": "B"}}}, "a10"),
        (TABLE | {"method": "rounding", "base": 5}, "only unweighted numbers of contributors"),
        (COUNTS | {"method": "rounding"}, "a base for rounding, at least 3"),
        (COUNTS | {"method": "rounding", "base": 2}, "a cell would show that it is too small"),
        (
            COUNTS | {"method": "rounding", "base": 4, "minimum_frequency": 5},
            "at least 5 (the minimum frequency)",
        ),
        (
            COUNTS | {"method": "rounding", "base": 5, "levels": "exact"},
            "with method rounding, only with adjustment",
        ),
        (
            COUNTS | {"method": "rounding", "base": 5, "capacity": 50.0},
            "with method rounding, only with adjustment",
        ),
        (COUNTS | {"method": "rounding", "base": 5, "relax": ["capacities"]}, "adjacent"),
        (COUNTS | {"base": 5}, "with method adjustment, only with rounding"),
        (COUNTS | {"largest_noise": 5}, "with method adjustment, only with cell_key"),
        (NOISY | {"noise_variance": 25.0}, "less than 25, the square"),
        (NOISY | {"largest_noise": 2}, "at least 3 (the minimum frequency)"),
        (NOISY | {"noise_table": "p.txt", "noise_variance": 2.0}, "not applicable next to noise_table"),
        (COUNTS | {"noise_table": "p.txt"}, "with method adjustment, only with cell_key"),
        (NOISY | {"minimum_frequency": 1}, "minimum frequency of 1 protects nothing"),
        (NOISY | {"effort": "fast"}, "only with adjustment or rounding"),
        (NOISY | {"capacity": 50.0}, "with method cell_key"),
        (NOISY | {"zeros": "omit"}, "zeros must look the same"),
        (NOISY | {"tau_argus": True}, "totals are not additive"),
        (NOISY | {"quality": {"max_gap": 0.1}}, "with method cell_key, only with adjustment or rounding"),
        (NOISY | {"base": 5}, "only with rounding"),
        (NOISY | {"weighted": True}, "a key belongs to a record"),
        (TABLE | {"method": "cell_key"}, "noise_scaling"),
        (CELLS | {"kind": "frequency", "contributors": None, "method": "cell_key"}, "keys belong to records"),
        (TABLE | {"relax": ["adjacent"]}, "adjacent"),
        (PARTS | {"parts": {"sector": ["firms", "home"]}}, "a dimension of a table that is no column"),
        (PARTS | {"parts": {"region": ["firms", "home"]}}, "a dimension of a table that is no column"),
        (PARTS | {"parts": {"market": ["firms"]}}, "two or more columns, each once"),
        (PARTS | {"parts": {"market": ["firms", "turnover"]}}, "two or more columns, each once"),
        (PARTS | {"parts": {"market": ["firms", "a10"]}}, "a10"),
        (PARTS | {"kind": "frequency", "value": None}, "unless records are summed"),
        (CELLS | {"tables": [["a21", "market"]], "parts": PARTS["parts"]}, "unless records are summed"),
    ],
)
def test_refusal_of_a_faulty_table_names_the_key(table: dict[str, Any], named: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        build(table)
    assert named in str(caught.value)
    assert "[table]" in str(caught.value)


def test_rounding_base_of_counts_is_at_least_the_minimum_frequency() -> None:
    table = table_of(build(COUNTS | {"method": "rounding", "base": 3, "relax": ["adjacent"]}))
    assert (table.method, table.base, table.levels) == ("rounding", 3, "secret")
    assert table_of(build(COUNTS)).method == "adjustment"


def test_cell_key_noise_needs_only_units() -> None:
    assert table_of(build(NOISY)).method == "cell_key"
    without = {"a21": {"role": "other"}, "region": {"role": "region"}}
    with pytest.raises(SpecificationError, match="a variable of role unit"):
        build(NOISY, variables=without)


def test_table_is_published_only_as_parquet() -> None:
    publish = {"path": "lake", "evidence": "evidence"}
    with pytest.raises(SpecificationError, match="parquet, the only format of tables"):
        build(TABLE, publish=publish | {"format": "delta"})
    with pytest.raises(SpecificationError, match="tables are published in files of their own") as refused:
        build(TABLE, publish=publish | {"partition_by": "region", "csv": True})
    assert [key in str(refused.value) for key in ("[publish] partition_by", "[publish] csv")] == [True, True]


def test_missing_number_in_a_table_is_rejected_instead_of_kept() -> None:
    alone = {"numeric": "own_cluster"}
    with pytest.raises(SpecificationError, match=r"\[missing\] numeric.*no clusters"):
        build(TABLE, missing=alone)
    kept = {"turnover": {"role": "quasi_identifier", "kind": "numeric"}, "region": {"role": "region"}}
    beside_records = build({"value": "turnover", "tables": [["region"]]}, variables=kept, missing=alone)
    assert as_input(beside_records).missing.numeric == "reject"


def test_rows_of_a_finished_table_are_no_units() -> None:
    assert as_input(build(CELLS)).release.k == 1
    assert as_input(build(TABLE)).release.k == 3


@pytest.mark.parametrize(
    ("changes", "p"),
    [
        ({}, 10),
        ({"p_percent": 3}, 3),
        ({"dominance": {"n": 1, "k": 80}}, None),
        ({"kind": "frequency", "value": None}, None),
        ({"source": "cells", "contributors": "firms"}, None),
    ],
    ids=["by default", "as specified", "dominance", "counts", "finished cells"],
)
def test_every_magnitude_of_records_has_a_concentration_rule(changes: dict[str, Any], p: float) -> None:
    assert table_of(build({"value": "turnover", "tables": [["a21"]], **changes})).estimable_within == p


def test_column_with_the_name_status_is_refused_with_suppression() -> None:
    variables = {"status": {"role": "other"}, "turnover": {"role": "sensitive", "kind": "numeric"}}
    dimension = {"value": "turnover", "tables": [["status"]], "p_percent": 10}
    assert build(dimension, variables=variables).table is not None
    with pytest.raises(SpecificationError, match=r"(?s)table.*tables.*the column of cell statuses"):
        build(dimension | {"method": "suppression"}, variables=variables)
    value = {"value": "status", "tables": [["region"]], "p_percent": 10, "method": "suppression"}
    variables = {"region": {"role": "region"}, "status": {"role": "sensitive", "kind": "numeric"}}
    with pytest.raises(SpecificationError, match=r"(?s)table.*value.*the column of cell statuses"):
        build(value, variables=variables)


OF_RECORDS: list[tuple[dict[str, Any], str]] = [
    ({"method": {"unit": "household"}}, r"\[method\] unit"),
    ({"method": {"min_diversity": 2}}, r"\[method\] min_diversity"),
    ({"method": {"control_tables": {"kept_dimension": 1}}}, r"\[method\] control_tables"),
    ({"quality": {"max_homogeneous": 0.01}}, r"\[quality\] max_homogeneous"),
    ({"blocking": {"small_regions": "suppress"}}, r"\[blocking\] small_regions"),
    ({"rules": {"one": "a10 = 'x' -> a21 = 'y'"}}, r"\[rules\] one"),
    ({"population": {"path": "p.csv", "count": "n", "variables": ["region"]}}, r"\[population\] path"),
    ({"publish": {"disclose": ["records_suppressed"]}}, r"\[publish\] disclose"),
    ({"publish": {"series": "register"}}, r"\[publish\] series"),
    ({"publish": {"accept_dependencies": ["a10"]}}, r"\[publish\] accept_dependencies"),
]


@pytest.mark.parametrize(("changes", "named"), OF_RECORDS, ids=[named for _, named in OF_RECORDS])
def test_key_for_records_is_refused_in_a_specification_of_a_table_alone(
    changes: dict[str, Any], named: str
) -> None:
    places = {"path": "lake", "evidence": "evidence"}
    changes = changes | {"publish": places | changes.get("publish", {})}
    with pytest.raises(SpecificationError, match=named):
        build(TABLE, **changes)


def test_key_without_a_guarantee_is_allowed_in_a_specification_of_a_table_alone() -> None:
    steered = {"method": {"effort": "fast", "unit": "record"}, "blocking": {"max_records": 5_000}}
    steered |= {"quality": {"accept": {"max_homogeneous": "a reason"}}}
    assert build(TABLE, **steered).table is not None


def test_recode_of_a_summed_variable_is_refused_in_a_specification_of_a_table_alone() -> None:
    variables = {name: {"role": "other"} for name in ("region", "a21", "a10")}
    turnover = {"role": "sensitive", "kind": "numeric", "top_code": 100}
    with pytest.raises(SpecificationError, match=r"turnover\.top_code: found 100"):
        build(TABLE, variables=variables | {"turnover": turnover})
    build(TABLE, variables=variables | {"turnover": turnover | {"top_code": None, "missing": [97]}})


def test_key_that_the_table_would_ignore_is_refused_in_a_specification_of_records_and_a_table() -> None:
    variables = {
        "person": {"role": "unit"},
        "household": {"role": "household"},
        "a21": {"role": "quasi_identifier", "kind": "nominal"},
        "a10": {"role": "other"},
        "region": {"role": "region"},
        "turnover": {"role": "sensitive", "kind": "numeric"},
    }
    places = {"path": "lake", "evidence": "evidence"}
    of_series = build(TABLE, variables=variables, publish=places | {"series": "append"})
    with pytest.raises(SpecificationError, match=r"\[publish\] series: found 'append'"):
        require_table(of_series)
    with pytest.raises(SpecificationError, match=r"table.holding = 'household'"):
        require_table(build(TABLE, variables=variables, method={"unit": "household"}))
    held = build(TABLE | {"holding": "household"}, variables=variables, method={"unit": "household"})
    require_table(held)
    assert as_input(held).variables["household"].role == "other"


def test_missing_quasi_identifiers_are_reported_as_one_fault() -> None:
    with pytest.raises(SpecificationError, match="at least one variable of role quasi_identifier"):
        build(None, method={"control_tables": {"kept_dimension": 1}})


@pytest.mark.parametrize(
    ("column", "found"),
    [
        ("A21", '"a21"'),
        ("Turnover", '"Turnover"'),
        *((name, f'"{name}"') for name in ("total", "v", "parts")),
    ],
)
def test_columns_of_a_table_that_differ_only_in_case_are_refused(column: str, found: str) -> None:
    variables = {name: {"role": "other"} for name in ("a10", "a21", "region", column)}
    turnover = {"role": "sensitive", "kind": "numeric"}
    with pytest.raises(SpecificationError, match=f"found {found}, allowed: another name"):
        build(TABLE | {"tables": [[column, "a21"]]}, variables=variables | {"turnover": turnover})
