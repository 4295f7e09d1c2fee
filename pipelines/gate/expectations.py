"""Judge metrics by Great Expectations, and say what is not met; the only file that starts it.

The suite is judged on a frame of one row of metrics. Results carry no values, and as many of them must
come back as were asked for: a check that is silently missing is a failure.
"""

from __future__ import annotations

import importlib
import json
import threading
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.gate.data_docs import write_data_docs
from schemas.requirements.records import MetricKey, Requirement


@dataclass(frozen=True)
class Verdicts:
    """What was judged, and how.

    Attributes
    ----------
    rows : list of dict
        check, metric, variable, dimension, found, limit, passed: for the evidence.
    failures : list of str
        What is not met: what was found, what was expected, what to do.
    """

    rows: list[dict[str, Any]]
    failures: list[str]

    @property
    def passed(self) -> bool:
        """Whether every requirement is met."""
        return not self.failures


def warm_up() -> None:
    """Import Great Expectations, which takes seconds, beside the first jobs of Spark."""
    threading.Thread(
        target=importlib.import_module, args=["schemas.requirements.expectations"], daemon=True
    ).start()


def judge(
    name: str,
    requirements: Sequence[Requirement],
    metrics: Mapping[MetricKey, float],
    evidence: Path | None = None,
) -> Verdicts:
    """Judge metrics by requirements.

    Parameters
    ----------
    name : str
        Of the suite: ``input`` or ``release``.
    requirements : sequence of Requirement
    metrics : mapping of MetricKey to float
        A metric that is required and absent counts as not met.
    evidence : Path, optional
        Folder for the results of Great Expectations; without it they are not kept.
    """
    absent = [requirement for requirement in requirements if requirement.key not in metrics]
    present = [requirement for requirement in requirements if requirement.key in metrics]
    expected = _expected(name, present, metrics, evidence)
    rows, failures = [], []
    for requirement in present:
        found = float(metrics[requirement.key])
        passed = requirement.met(found) and expected.get(requirement.key.column, False)
        rows.append(_row(name, requirement, found, passed))
        if not passed:
            failures.append(requirement.failure(found))
    for requirement in absent:
        rows.append(_row(name, requirement, None, False))
        failures.append(f"{requirement.key.column} was not measured, so it cannot be judged.")
    return Verdicts(rows, failures)


def _row(name: str, requirement: Requirement, found: float | None, passed: bool) -> dict[str, Any]:
    limit = requirement.at_most if requirement.at_least is None else requirement.at_least
    return {
        "check": name,
        "metric": requirement.key.metric,
        "variable": requirement.key.variable or None,
        "dimension": requirement.key.dimension or None,
        "found": found,
        "limit": limit,
        "passed": passed,
    }


def _expected(
    name: str, requirements: Sequence[Requirement], metrics: Mapping[MetricKey, float], evidence: Path | None
) -> dict[str, bool]:
    """Column of the metrics frame -> whether Great Expectations finds its expectation met."""
    if not requirements:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import great_expectations as gx

        from schemas.requirements.expectations import NO_VALUES, expectation_suite, metrics_frame

        context = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = {"globally": False}  # type: ignore[assignment]
        batch = (
            context.data_sources.add_pandas(name="metrics")
            .add_dataframe_asset(name=name)
            .add_batch_definition_whole_dataframe("metrics")
            .get_batch({"dataframe": metrics_frame(metrics, requirements)})
        )
        result = batch.validate(expectation_suite(name, requirements), result_format=NO_VALUES)
    if evidence is not None:
        evidence.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = json.dumps(result.to_json_dict(), indent=2, sort_keys=True, default=str)
        (evidence / f"{name}.json").write_text(text, encoding="utf-8")
        write_data_docs(result, evidence / f"{name}.html")
    found = {
        str(each.expectation_config.kwargs["column"]): bool(each.success)
        for each in result.results
        if each.expectation_config is not None
    }
    return found if len(found) == len(requirements) else {}
