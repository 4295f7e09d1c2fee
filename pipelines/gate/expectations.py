"""Great Expectations as second judge of every metric, with Data Docs.

The suite is judged on a frame with one row of metrics: counts, shares and errors, and no value of a record.
There must be as many results as requirements: a missing result is a failure. The suite is
saved in the format of Great Expectations.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from microguard.pipelines.gate.data_docs import write_data_docs
from microguard.schemas.requirements.requirement import MetricKey, Requirement

if TYPE_CHECKING:
    from great_expectations.core import ExpectationSuiteValidationResult


#: Module that imports Great Expectations; it is prefetched, because the import takes seconds.
EXPECTS = "microguard.pipelines.gate.suite"


def met_by_expectations(
    name: str, requirements: Sequence[Requirement], metrics: Mapping[MetricKey, float], evidence: Path | None
) -> dict[str, bool]:
    """Return for each column of the metrics frame whether Great Expectations judged its expectation as met.

    The result is empty, so that nothing counts as met, if there are fewer results than requirements.

    Parameters
    ----------
    name : str
        Name of the suite.
    requirements, metrics : sequence of Requirement, mapping of MetricKey to float
        Every requirement with its metric.
    evidence : Path, optional
        Folder for the results.
    """
    if not requirements:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import great_expectations as gx
        from microguard.pipelines.gate.suite import OBSERVED, expectation_suite, metrics_frame

        context = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = {"globally": False}  # type: ignore[assignment]
        batch = (
            context.data_sources.add_pandas(name="metrics")
            .add_dataframe_asset(name=name)
            .add_batch_definition_whole_dataframe("metrics")
            .get_batch({"dataframe": metrics_frame(metrics, requirements)})
        )
        suite = expectation_suite(name, requirements)
        result = batch.validate(suite, result_format=OBSERVED)
    for each in result.results:  # the renderers of Data Docs do not accept NumPy numbers
        if each.result.get("observed_value") is not None:
            each.result["observed_value"] = float(each.result["observed_value"])
    if evidence is not None:
        write_results(result, name, evidence)
        text = json.dumps(suite.to_json_dict(), indent=2, sort_keys=True)
        (evidence / f"{name}.suite.json").write_text(text, encoding="utf-8")
    answers = {
        str(each.expectation_config.kwargs["column"]): bool(each.success)
        for each in result.results
        if each.expectation_config is not None
    }
    return answers if len(answers) == len(requirements) else {}


def write_results(result: ExpectationSuiteValidationResult, name: str, evidence: Path) -> None:
    """Write the results of a suite as JSON and as Data Docs."""
    evidence.mkdir(mode=0o700, parents=True, exist_ok=True)
    text = json.dumps(result.to_json_dict(), indent=2, sort_keys=True, default=str)
    (evidence / f"{name}.json").write_text(text, encoding="utf-8")
    write_data_docs(result, evidence / f"{name}.html")
