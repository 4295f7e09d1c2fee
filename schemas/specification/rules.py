"""Edit rules: conditions on every record, such as `relationship = 'child' -> marital_status = 'single'`.

    rule        condition [ "->" condition ]
    condition   all ( "or" all )*
    all         term ( "and" term )*
    term        "not" term | "(" condition ")" | comparison
    comparison  variable ( "=" | "!=" | "<" | "<=" | ">" | ">=" ) ( value | variable )
                | variable "in" "(" value ( "," value )* ")"
                | variable "is" [ "not" ] "missing"
    variable    a name, in double quotes where it has other signs than letters, digits and "_"
    value       a number, or text in single quotes

A rule is parsed into a tree of immutable objects and is never evaluated as code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
WORDS = frozenset({"and", "or", "not", "in", "is", "missing"})
DEEPEST = 50
"""Maximum depth of nested brackets and negations in a rule, far above that of any handwritten one."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>[+-]?[0-9]+(?:\.[0-9]*)?(?![\w.]))|(?P<name>[^\W0-9]\w*)|\"(?P<quoted>[^\"]+)\""
    r"|'(?P<text>(?:[^']|'')*)'|(?P<sign>->|!=|<=|>=|[=<>(),]))"
)


class FaultyRule(ValueError):
    """Raised for a rule that cannot be parsed; the message states the expected and the found text."""


@dataclass(frozen=True)
class Variable:
    """Variable of the records in a rule."""

    name: str


Value = str | float
Operand = Variable | str | float


@dataclass(frozen=True)
class Comparison:
    """Comparison `variable sign other`."""

    variable: Variable
    sign: str
    other: Operand


@dataclass(frozen=True)
class Among:
    """Condition `variable in (values)`."""

    variable: Variable
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Missing:
    """Condition `variable is missing`."""

    variable: Variable


@dataclass(frozen=True)
class Not:
    """Negation of a condition."""

    condition: Condition


@dataclass(frozen=True)
class AllOf:
    """Conjunction of conditions."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class AnyOf:
    """Disjunction of conditions."""

    conditions: tuple[Condition, ...]


Condition = Comparison | Among | Missing | Not | AllOf | AnyOf


@dataclass(frozen=True)
class Rule:
    """Edit rule: if `given` holds, `then` must hold. Without `given`, `then` must always hold."""

    then: Condition
    given: Condition | None = None

    @property
    def variables(self) -> tuple[str, ...]:
        """Return the distinct variables of the rule in the order of their first occurrence."""
        both = [self.then] if self.given is None else [self.given, self.then]
        return tuple(dict.fromkeys(name for condition in both for name in _variables(condition)))


def parse_rule(text: str) -> Rule:
    """Parse a rule.

    Raises
    ------
    FaultyRule
    """
    parser = _Parser(_tokens(text))
    first = parser.condition(0)
    if parser.take("->"):
        rule = Rule(parser.condition(0), first)
    else:
        rule = Rule(first)
    parser.end()
    return rule


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise FaultyRule(f"an unknown character at position {at + 1}; put text into single quotes")
        kind = str(match.lastgroup)
        value = match[kind]
        if kind == "name" and value in WORDS:
            kind = "word"
        tokens.append((kind, value.replace("''", "'") if kind == "text" else value))
        at = match.end()
    return tokens


class _Parser:
    """Recursive-descent parser of the tokens of a rule."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = tokens
        self._at = 0

    def take(self, *values: str) -> str | None:
        """Consume and return the next token if it is one of these signs or words; otherwise return None."""
        if self._at < len(self._tokens):
            kind, value = self._tokens[self._at]
            if kind in ("sign", "word") and value in values:
                self._at += 1
                return value
        return None

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise self._expected('the end, "and", "or" or one "->"')

    def condition(self, depth: int) -> Condition:
        terms = [self._all(depth)]
        while self.take("or"):
            terms.append(self._all(depth))
        return terms[0] if len(terms) == 1 else AnyOf(tuple(terms))

    def _all(self, depth: int) -> Condition:
        terms = [self._term(depth)]
        while self.take("and"):
            terms.append(self._term(depth))
        return terms[0] if len(terms) == 1 else AllOf(tuple(terms))

    def _term(self, depth: int) -> Condition:
        if depth > DEEPEST:
            raise FaultyRule(f"more than {DEEPEST} nested brackets or negations")
        if self.take("not"):
            return Not(self._term(depth + 1))
        if self.take("("):
            inside = self.condition(depth + 1)
            self._must(")")
            return inside
        return self._comparison()

    def _comparison(self) -> Condition:
        variable = self._operand()
        if not isinstance(variable, Variable):
            raise FaultyRule("a value in place of a variable: a comparison begins with a variable")
        if self.take("is"):
            negated = self.take("not") is not None
            self._must("missing")
            return Not(Missing(variable)) if negated else Missing(variable)
        if self.take("in"):
            self._must("(")
            values = [self._value()]
            while self.take(","):
                values.append(self._value())
            self._must(")")
            return Among(variable, tuple(values))
        sign = self.take(*COMPARISONS)
        if sign is None:
            raise self._expected('one of = != < <= > >=, "in" or "is"')
        return Comparison(variable, sign, self._operand())

    def _value(self) -> Value:
        operand = self._operand()
        if isinstance(operand, Variable):
            raise FaultyRule("a variable in place of a value; put text into single quotes")
        return operand

    def _operand(self) -> Operand:
        if self._at < len(self._tokens):
            kind, value = self._tokens[self._at]
            if kind in ("name", "quoted", "number", "text"):
                self._at += 1
                if kind == "number":
                    return float(value)
                return value if kind == "text" else Variable(value)
        raise self._expected("a variable or a value")

    def _must(self, value: str) -> None:
        if self.take(value) is None:
            raise self._expected(f'"{value}"')

    def _expected(self, what: str) -> FaultyRule:
        if self._at == len(self._tokens):
            return FaultyRule(f"an end where {what} is expected")
        return FaultyRule(f'"{self._tokens[self._at][1]}" where {what} is expected')


def _variables(condition: Condition) -> list[str]:
    if isinstance(condition, Comparison):
        other = [condition.other.name] if isinstance(condition.other, Variable) else []
        return [condition.variable.name, *other]
    if isinstance(condition, Among | Missing):
        return [condition.variable.name]
    if isinstance(condition, Not):
        return _variables(condition.condition)
    return [name for part in condition.conditions for name in _variables(part)]
