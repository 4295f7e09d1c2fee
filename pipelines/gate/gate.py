"""The two gates: what the input must satisfy to be protected, and a release to be published."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.gate.expectations import Verdicts, judge
from pipelines.intake.screen import ScreenedInput
from pipelines.measures.exposure import Exposure
from pipelines.publication.read_back import Written
from schemas.errors import GateRefused, InputRejected, ProtectionFailed
from schemas.requirements.records import MetricKey, gate_requirements
from schemas.specification.model import Specification

QUARANTINE = "quarantine.json"
EXPECTATIONS = "expectations"


def accept_types(schema: pa.Schema, specification: Specification) -> None:
    """Refuse columns that the format of the release cannot hold as they are.

    Raises
    ------
    InputRejected
    """
    if specification.publish.format != "delta":
        return
    from pipelines.publication.formats.delta import not_carried

    names = not_carried(schema)
    if names:
        raise InputRejected(
            f"A Delta table cannot hold {', '.join(names)} as the input has it: its type is none of Delta's, "
            'or names differ in case alone. Change the file, or set publish.format to "parquet".'
        )


def gate(
    screened: ScreenedInput,
    exposed: Exposure,
    written: Written,
    quality: Mapping[str, Any],
    specification: Specification,
    folder: Path,
) -> Verdicts:
    """Judge what the written files and the measures say."""
    metrics = written.metrics()
    metrics[MetricKey("records_unaccounted")] = abs(
        screened.records - sum(screened.rejected.values()) - screened.suppressed - written.records
    )
    sums = list(quality["loss"].values())
    sst = sum(part["sst"] for part in sums)
    metrics[MetricKey("information_loss")] = sum(part["sse"] for part in sums) / sst if sst > 0 else 0.0
    cells = sum(table["cells"] for table in quality["tables"])
    chi2 = sum(table["chi2"] for table in quality["tables"])
    metrics[MetricKey("chi2_per_cell")] = chi2 / cells if cells else 0.0
    for dimension, part in quality["by_dimension"].items():
        metrics[MetricKey("max_absolute_error", dimension=int(dimension))] = part["max_absolute_error"]
    for name, uniques in quality["uniques_published"].items():
        metrics[MetricKey("unique_published", name)] = uniques / max(written.records, 1)
    for name, part in quality["dominance"].items():
        metrics[MetricKey("dominated_clusters", name)] = part["failing"]
    for name, least in quality["diversity"].items():
        metrics[MetricKey("smallest_diversity", name)] = least
    for name in specification.published_as_it_is:
        metrics[MetricKey("determined", name)] = sum(each.column == name for each in exposed.dependencies)
    return judge("release", gate_requirements(specification), metrics, folder / EXPECTATIONS)


def refuse(verdicts: Verdicts, written: Written) -> None:
    """Stop a release that breaks its promise, or that the gate does not let pass.

    Raises
    ------
    ProtectionFailed
        Where the written files are not the records that were protected.
    GateRefused
    """
    if not (written.as_staged and written.as_declared):
        raise ProtectionFailed(
            "The files that were written do not hold the records that were protected, with the columns and "
            "types of the input. Nothing was published. Look for a faulty disk or another writer in the "
            "evidence area."
        )
    if not written.others_as_read:
        raise ProtectionFailed(
            "The columns that are published as they are do not hold what the input holds. Nothing was "
            "published. If the input may have changed during the run, call this again; if not, this is a "
            "fault of microguard: please report it."
        )
    if not verdicts.passed:
        raise GateRefused(
            f"The gate refuses this release: {' '.join(verdicts.failures)} Nothing was published."
        )


def disclosed(quality: Mapping[str, Any], specification: Specification) -> dict[str, float]:
    """The measures against the original that `publish.disclose` lists."""
    loss, tables = list(quality["loss"].values()), quality["tables"]
    cells = sum(table["cells"] for table in tables)
    sst = sum(part["sst"] for part in loss)
    measures = {
        "information_loss": sum(part["sse"] for part in loss) / sst if sst > 0 else 0.0,
        "chi2_per_cell": sum(table["chi2"] for table in tables) / cells if cells else 0.0,
        "max_absolute_error": max((table["max_absolute_error"] for table in tables), default=0),
        "max_relative_error": max((table["max_relative_error"] for table in tables), default=0.0),
        "records_suppressed": quality["counts"]["suppressed"],
        "records_rejected": sum(quality["counts"]["rejected"].values()),
    }
    return {name: float(measures[name]) for name in specification.publish.disclose}
