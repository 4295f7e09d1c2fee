"""Read the file of an agency's own Great Expectations suite; a refusal lists every fault.

The file is JSON as saved by Great Expectations 1.x. It is checked before any record is read: a suite that
cannot be judged completely is not judged at all. Every expectation must be met, whatever its severity;
`mostly` allows exceptions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from microguard.pipelines.gate.expected import NAMES_ONE, NAMES_SEVERAL, AgencySuite, Expected
from microguard.schemas.errors import Failure, SpecificationError, refusal_text
from microguard.schemas.specification.model import Specification

KEY = "[input] expectations"
#: Keywords that control the display of a result or its batch; microguard sets these.
NOT_THEIRS = ("result_format", "catch_exceptions", "batch_id")
#: Types of expectations that read other data than the records, or return records.
REFUSED = (
    "unexpected_rows_expectation",
    "expect_query_results_to_match_comparison",
    "expect_table_row_count_to_equal_other_table",
)


def agency_suite(specification: Specification) -> AgencySuite | None:
    """Read the suite that the specification names; None if it names none.

    Raises
    ------
    SpecificationError
        The error lists every fault of the file.
    """
    named = specification.input.expectations
    if named is None:
        return None
    try:
        content = json.loads(Path(specification.resolve(named)).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raise SpecificationError(
            f"{KEY}: the file {named!r} cannot be read as JSON. Give a suite as Great Expectations 1.x saves "
            "it; the path is relative to the specification."
        ) from None
    if not _is_suite(content):
        raise SpecificationError(
            f"{KEY}: the file {named!r} is no suite as Great Expectations 1.x saves it: expected an object "
            'with "name" and a list of at least one "expectations", each with "type" and "kwargs".'
        )
    expectations = tuple(_expected(each) for each in content["expectations"])
    faults = tuple(
        Failure(KEY, f"expectation {number}, {expected.text}: {fault}")
        for number, expected in enumerate(expectations, start=1)
        for fault in _faults(expected, specification)
    )
    if faults:
        raise SpecificationError(
            refusal_text(f"{KEY}: the suite {named!r} cannot be judged.", faults), faults
        )
    return AgencySuite(named, content["name"], expectations)


def _is_suite(content: Any) -> bool:
    expectations = content.get("expectations") if isinstance(content, dict) else None
    return (
        isinstance(expectations, list)
        and bool(expectations)
        and isinstance(content.get("name"), str)
        and all(_is_expectation(each) for each in expectations)
    )


def _is_expectation(content: Any) -> bool:
    return (
        isinstance(content, dict)
        and isinstance(content.get("type"), str)
        and isinstance(content.get("kwargs"), dict)
        and all(isinstance(content["kwargs"].get(name, ""), str) for name in NAMES_ONE)
        and all(isinstance(content["kwargs"].get(name) or [], list) for name in NAMES_SEVERAL)
    )


def _expected(content: Mapping[str, Any]) -> Expected:
    kwargs = {name: value for name, value in content["kwargs"].items() if name not in NOT_THEIRS}
    return Expected(content["type"], kwargs)


def _faults(expected: Expected, specification: Specification) -> Iterator[str]:
    from microguard.pipelines.gate.agency_expectations import unfit  # imports Great Expectations (seconds)

    if expected.type in REFUSED:
        yield "this expectation reads further data or returns records; remove it"
        return
    if _has_parameter(expected.kwargs):
        yield 'this expectation needs a "$PARAMETER", which is never set; write the value instead'
        return
    for name in expected.columns:
        if name not in specification.variables:
            yield f"column {name} is not declared; declare it in [variables], or correct the name"
        elif name in specification.identifiers:
            yield f"column {name} is an identifier, which is never read; remove the expectation"
    yield from unfit(expected)


def _has_parameter(value: Any) -> bool:
    if isinstance(value, dict):
        return "$PARAMETER" in value or any(map(_has_parameter, value.values()))
    return isinstance(value, list) and any(map(_has_parameter, value))
