"""Expressions of derived columns, such as `log(income)` or `area_arable + area_pasture`.

    expression  term ( ( "+" | "-" ) term )*
    term        factor ( ( "*" | "/" ) factor )*
    factor      number | variable | "-" factor | function "(" expression ")" | "(" expression ")"
    function    log | log10 | exp | sqrt | abs
    variable    a name, in double quotes if it has other signs than letters, digits and "_", or is a word of
                Python such as "class"

An expression is parsed into a tree of immutable objects and is never evaluated as code.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass

FUNCTIONS = ("log", "log10", "exp", "sqrt", "abs")
DEEPEST = 50
"""Maximum depth of nested brackets and operations in an expression, far above that of any handwritten one."""
LONGEST = 2_000
_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


class FaultyExpression(ValueError):
    """Raised for an expression that cannot be parsed; the message states the expected and the found text."""


@dataclass(frozen=True)
class Term:
    """Term of an expression: a variable of the records."""

    name: str


@dataclass(frozen=True)
class Operation:
    """Operation `one sign other`."""

    sign: str
    one: Expression
    other: Expression


@dataclass(frozen=True)
class Call:
    """Function call `function(of)`."""

    function: str
    of: Expression


Expression = Term | float | Operation | Call


def parse_expression(text: str) -> Expression:
    """Parse an expression.

    Raises
    ------
    FaultyExpression
    """
    if len(text) > LONGEST:
        raise FaultyExpression(f"more than {LONGEST:,} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise FaultyExpression(
            "characters that no expression contains, an unquoted name that is a keyword of Python (class, "
            "from), or a bracket that is not closed"
        ) from None
    return _read(tree.body, 0)


def terms(expression: Expression) -> tuple[str, ...]:
    """Return the distinct variables of an expression in the order of their first occurrence."""
    match expression:
        case Term(name):
            return (name,)
        case Operation(_, one, other):
            return tuple(dict.fromkeys((*terms(one), *terms(other))))
        case Call(_, of):
            return terms(of)
    return ()


def _read(node: ast.expr, depth: int) -> Expression:
    if depth > DEEPEST:
        raise FaultyExpression(f"more than {DEEPEST} nested operations")
    match node:
        case ast.Name(id=name) | ast.Constant(value=str(name)):
            return Term(name)
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            if number > sys.float_info.max:
                raise FaultyExpression("a number that is too large")
            return float(number)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return Operation("-", 0.0, _read(operand, depth + 1))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _SIGNS:
            return Operation(_SIGNS[type(sign)], _read(left, depth + 1), _read(right, depth + 1))
        case ast.Call(func=ast.Name(id=function), args=[of], keywords=[]) if function in FUNCTIONS:
            return Call(function, _read(of, depth + 1))
    raise FaultyExpression(
        f"something that is no number, variable, operation + - * / or function {', '.join(FUNCTIONS)}"
    )
