"""Checks of recodes, of number formats, and of edit rules."""

from __future__ import annotations

from collections.abc import Iterator

from microguard.schemas.specification.faults import NOTHING, Fault, Path, fault
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.rules import FaultyRule, parse_rule


def recode_faults(spec: Specification) -> Iterator[Fault]:
    """Return the faults of recodes that their variable does not support, and of decimal and thousands marks
    that cannot be distinguished.
    """
    yield from _writing(spec)
    yield from _recodes(spec)


def rule_faults(spec: Specification) -> Iterator[Fault]:
    """Return the faults of edit rules that cannot be parsed, or that use unpublished variables."""
    for name, text in spec.rules.items():
        try:
            rule = parse_rule(text)
        except FaultyRule as error:
            yield fault(("rules", name), text, f"a rule, but it has {error}")
            continue
        for variable in rule.variables:
            if variable not in spec.published:
                yield fault(("rules", name), variable, "published variables", choices=spec.published)


def _writing(spec: Specification) -> Iterator[Fault]:
    if spec.input.thousands is not None and spec.input.thousands == spec.input.decimal:
        yield fault(("input", "thousands"), spec.input.thousands, "another mark than input.decimal")


def _recodes(spec: Specification) -> Iterator[Fault]:
    """Return the faults of recodes that are not possible for a variable, and of pairs of recodes that exclude
    each other.
    """
    for name, variable in spec.variables.items():
        key: Path = ("variables", name)
        given = variable.recodes
        hidden = variable.role in ("unit", "identifier", "household", "weight")
        if given and hidden:
            yield fault(key, ", ".join(given), f'no recoding keys with role "{variable.role}"')
            continue
        for part in ("top_code", "bottom_code", "round_to"):
            if part in given and variable.kind != "numeric":
                yield fault((*key, part), given[part], 'not applicable unless kind is "numeric"')
        if variable.date is not None and (variable.missing or variable.hierarchy is not None):
            yield fault((*key, "date"), variable.date, "not applicable together with missing or hierarchy")
        low, high = variable.bottom_code, variable.top_code
        if low is not None and high is not None and low >= high:
            yield fault((*key, "bottom_code"), low, f"below top_code = {high:g}")
        if variable.bands is not None:
            if variable.kind == "numeric":
                yield fault(
                    (*key, "bands"),
                    list(variable.bands),
                    'kind "nominal" or "ordinal", because bands are categories',
                )
            if not variable.bands or sorted({*variable.bands}) != list(variable.bands):
                yield fault((*key, "bands"), list(variable.bands), "one number or more, ascending")
        if variable.hierarchy is not None:
            if variable.kind == "numeric" or variable.bands is not None:
                yield fault(
                    (*key, "hierarchy"),
                    variable.hierarchy,
                    'kind "nominal" or another kind of categories, without bands',
                )
            if variable.level is None and variable.kind != "hierarchical":
                allowed = "the number of the published column of the hierarchy file, 1 for the first"
                yield fault((*key, "level"), NOTHING, allowed)
        elif variable.level is not None:
            yield fault((*key, "level"), variable.level, "not applicable without hierarchy")
