"""Tests of edit rules: parsed rules and refused rules."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.schemas.specification.rules import (
    AllOf,
    Among,
    AnyOf,
    Comparison,
    FaultyRule,
    Missing,
    Not,
    Rule,
    Variable,
    parse_rule,
)

AGE, STATUS = Variable("age"), Variable("marital status")


def test_edit_rule_has_a_condition_and_a_consequence():
    rule = parse_rule(
        """age < 16 and not sex in ('x', 'it''s') -> "marital status" = 'single' or age is missing"""
    )
    assert rule == Rule(
        given=AllOf((Comparison(AGE, "<", 16.0), Not(Among(Variable("sex"), ("x", "it's"))))),
        then=AnyOf((Comparison(STATUS, "=", "single"), Missing(AGE))),
    )
    assert rule.variables == ("age", "sex", "marital status")


def test_and_has_precedence_over_or_and_brackets_over_both():
    a, b, c = (Comparison(Variable(name), "=", 1.0) for name in "abc")
    assert parse_rule("a = 1 or b = 1 and c = 1").then == AnyOf((a, AllOf((b, c))))
    assert parse_rule("(a = 1 or b = 1) and c = 1").then == AllOf((AnyOf((a, b)), c))
    assert parse_rule("wage <= income").then == Comparison(Variable("wage"), "<=", Variable("income"))
    assert parse_rule("profit >= -1.5").then == Comparison(Variable("profit"), ">=", -1.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "an end where"),
        ("age <", "an end where"),
        ("age < 16 ->", "an end where"),
        ("a = 1 -> b = 2 -> c = 3", '"->" where the end'),
        ("16 < age", "begins with a variable"),
        ("age = 1 2", '"2" where the end'),
        ("age in ()", '")" where'),
        ("age in (other)", "in place of a value"),
        ("age is young", '"young" where "missing"'),
        ("(age = 1", 'where ")" is expected'),
        ("__import__('os')", '"(" where'),
        ("age = 1; drop", "position 8"),
        ("not " * 60 + "a = 1", "nested"),
    ],
)
def test_invalid_edit_rule_is_refused_with_what_was_expected(text, message):
    with pytest.raises(FaultyRule) as caught:
        parse_rule(text)
    assert message in str(caught.value)


@given(st.text(max_size=30))
def test_any_text_is_parsed_as_a_rule_or_refused(text):
    with suppress(FaultyRule):
        assert parse_rule(text).variables
