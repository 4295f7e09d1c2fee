"""Judge an agency's own suite on the original records: Great Expectations returns only yes or no.

Results have no values, and the text of an exception, which may quote a record, is discarded. An expectation
that could not be judged counts as not met. There must be as many results as expectations, each identified by
its number.

Great Expectations takes five seconds to import: import this module only if there is a suite.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

from great_expectations.compatibility.pydantic import ValidationError
from great_expectations.core import ExpectationSuiteValidationResult
from great_expectations.exceptions import GreatExpectationsError
from great_expectations.expectations.expectation import Expectation
from great_expectations.expectations.registry import (
    get_expectation_impl,
    list_registered_expectation_implementations,
)
from microguard.pipelines.gate.expectations import write_results
from microguard.pipelines.gate.expected import AgencySuite, Expected
from microguard.pipelines.gate.gate import Verdict, Verdicts
from microguard.pipelines.gate.suite import NO_VALUES, gx
from microguard.schemas.errors import Failure
from pyspark.sql import DataFrame

NUMBER = "number"
#: Name of the agency's results, which are stored next to those of our suites.
RESULTS = "agency"
CORRECT = "correct the records, or the suite"


def unfit(expected: Expected) -> Iterator[str]:
    """Return the reason if Great Expectations has no such expectation or refuses its keywords, else None."""
    try:
        _built(expected, 0)
    except ValidationError as error:
        for each in error.errors():
            at = ", ".join(str(part) for part in each["loc"] if part != "__root__")
            yield f"{at or 'its keywords'}: {each['msg']}"
    except GreatExpectationsError:
        near = get_close_matches(expected.type, list_registered_expectation_implementations(), n=1)
        yield f"Great Expectations {gx.__version__} has no expectation of this type" + (
            f" (did you mean {near[0]}?)" if near else ""
        )
    except (TypeError, ValueError):
        yield "its keywords do not fit its type"


def judge_records(suite: AgencySuite, records: DataFrame, evidence: Path) -> Verdicts:
    """Judge the original records by every expectation of a suite.

    Parameters
    ----------
    suite : AgencySuite
    records : DataFrame
        All declared columns except identifiers, before any recoding.
    evidence : Path
        Folder for the results.
    """
    built = [_built(expected, number) for number, expected in enumerate(suite.expectations)]
    try:
        with _without_a_word():
            result = _result(built, suite.name, records)
        answers = _answers(result)
    except Exception:  # the text of the error may quote a record, and no expectation was evaluated
        answers = {}
    else:
        write_results(result, RESULTS, evidence)
    if len(answers) != len(suite.expectations):
        answers = {}
    rows, failures = [], []
    for number, expected in enumerate(suite.expectations):
        passed, judged = answers.get(number, (False, False))
        variable = ", ".join(expected.columns) or None
        rows.append(Verdict("input", expected.type, variable, None, None, None, passed, promised=False))
        if not passed:
            what = f"{expected.text} {'is not met' if judged else 'could not be judged'}"
            unjudged = (
                "an expectation that cannot be evaluated counts as not met: check whether it fits the type "
                "of the column"
            )
            failures.append(Failure(expected.type, what, remedy=CORRECT if judged else unjudged))
    return Verdicts(tuple(rows), (), tuple(failures))


def _built(expected: Expected, number: int) -> Expectation:
    return get_expectation_impl(expected.type)(**expected.kwargs, meta={NUMBER: number})


def _result(built: list[Expectation], name: str, records: DataFrame) -> ExpectationSuiteValidationResult:
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}  # type: ignore[assignment]
    batch = (
        context.data_sources.add_spark(name="records", persist=False)
        .add_dataframe_asset(name=RESULTS)
        .add_batch_definition_whole_dataframe("records")
        .get_batch({"dataframe": records})
    )
    return batch.validate(gx.ExpectationSuite(name=name, expectations=built), result_format=NO_VALUES)


def _answers(result: ExpectationSuiteValidationResult) -> dict[int, tuple[bool, bool]]:
    """Map the number of each expectation to whether it is met and whether it could be judged.

    The text of exceptions is discarded here.
    """
    answers = {}
    for each in result.results:
        judged = _was_judged(each.exception_info)
        each.exception_info = {
            "raised_exception": not judged,
            "exception_message": "",
            "exception_traceback": "",
        }
        assert each.expectation_config is not None
        number = each.expectation_config.meta[NUMBER]
        answers[number] = (judged and each.success is True, judged)
    return answers


def _was_judged(exception_info: object) -> bool:
    """Return whether no exception was raised, neither for the expectation nor for a metric that it needs."""
    return isinstance(exception_info, dict) and exception_info.get("raised_exception") is False


@contextmanager
def _without_a_word() -> Iterator[None]:
    """Suppress the log and the warnings of Great Expectations, which include tracebacks of tasks."""
    logger = logging.getLogger("great_expectations")
    before, silent = logger.propagate, logging.NullHandler()
    logger.propagate = False
    logger.addHandler(silent)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.removeHandler(silent)
        logger.propagate = before
