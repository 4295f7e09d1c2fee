"""Tests of expressions of derived columns: valid and refused ones, and variables that may be derived."""

import pytest
from microguard.schemas.errors import SpecificationError
from microguard.schemas.expressions import (
    Call,
    FaultyExpression,
    Operation,
    Term,
    parse_expression,
    terms,
)
from microguard.schemas.specification.read import build_specification


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a + b * 2", Operation("+", Term("a"), Operation("*", Term("b"), 2.0))),
        ("log(1 + a)", Call("log", Operation("+", 1.0, Term("a")))),
        ('"class" - a', Operation("-", Term("class"), Term("a"))),
        ('"b c" / -a', Operation("/", Term("b c"), Operation("-", 0.0, Term("a")))),
    ],
)
def test_parse_expression_returns_the_tree(text, tree):
    assert parse_expression(text) == tree


def test_terms_returns_each_variable_once():
    assert terms(parse_expression("a + log(b) - a / c")) == ("a", "b", "c")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a +",
        "a ** b",
        "__import__('os')",
        "a.b",
        "eval(a)",
        "a if b else c",
        "[a]",
        "a < b",
        "log(a, b)",
        "True",
        "class + 1",
        "a + 1e999",
        "a + 1" + "0" * 400,
    ],
)
def test_parse_expression_refuses_text_without_valid_arithmetic(text):
    with pytest.raises(FaultyExpression):
        parse_expression(text)


def test_parse_expression_refuses_deep_nesting():
    with pytest.raises(FaultyExpression):
        parse_expression("(" * 300 + "a" + ")" * 300 + "+ b" * 60)


def specification(folder, derived, role="derived", **sections):
    content = {
        "release": {"name": "r", "k": 3},
        "input": {"path": "d.parquet"},
        "variables": {
            "income": {"role": "quasi_identifier", "kind": "numeric"},
            "name": {"role": "identifier"},
            "linc": {"role": role, "kind": "numeric"},
        },
        "derived": derived,
        "publish": {"path": "lake", "evidence": "evidence"},
    }
    return build_specification(content | sections, folder)


def test_specification_accepts_a_derived_column(tmp_path):
    assert specification(tmp_path, {"linc": "log(income)"}).published == ("income", "linc")


@pytest.mark.parametrize(
    ("derived", "role", "what"),
    [
        ({}, "derived", "an expression"),
        ({"linc": "log(income)"}, "other", 'role "derived"'),
        ({"linc": "log(name)"}, "derived", "published variables"),
        ({"linc": "linc + 1"}, "derived", "not derived"),
        ({"linc": "1 + 1"}, "derived", "an expression of published variables"),
        ({"linc": "log(income"}, "derived", "bracket"),
    ],
)
def test_specification_refuses_a_faulty_derived_column(derived, role, what, tmp_path):
    with pytest.raises(SpecificationError, match=what):
        specification(tmp_path, derived, role)
