"""An OpenLineage event of a run: its input, its output, and each verdict as an assertion.

The evidence has one run event (OpenLineage 2-0-2; facets version, dataQualityAssertions and outputStatistics)
in a file. It is not sent: load the file into a lineage catalogue. It states which checks were met and never
what was found, because measures against the originals are for the agency alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

from microguard.pipelines.engine.command_result import now
from microguard.pipelines.engine.files import read_json, write_atomically
from microguard.pipelines.evidence.evidence import Evidence
from microguard.pipelines.gate.gate import Verdict
from microguard.schemas.requirements.requirement import MetricKey

FILE = "openlineage.json"
#: Namespace of the jobs; the name of a job is that of its releases.
NAMESPACE = "microguard"
_PRODUCER = "urn:microguard:run"
_SPECIFICATION = "https://openlineage.io/spec"

#: State of a run: verified and not decided yet, published, or refused by the gate or a person.
State = Literal["RUNNING", "COMPLETE", "FAIL"]


def write_lineage(folder: Path, evidence: Evidence, source: str | None) -> None:
    """Write the event of a verified release to its evidence folder.

    Parameters
    ----------
    source : str or None
        Absolute path or address of the input; None for a DataFrame of a session.
    """
    _write(folder, lineage_event(evidence, source, now()))


def settle_lineage(folder: Path, state: State) -> None:
    """Set how the run ended in its event, if there is one."""
    path = folder / FILE
    if path.is_file():
        remedy = "Run microguard report for the release once it is restored from its back-up."
        event = read_json(path, f"{FILE} of release {folder.name}", remedy, "eventType", "outputs")
        if event["eventType"] == state:
            return
        if state == "FAIL":  # there is no event
            event["outputs"] = [
                {key: value for key, value in each.items() if key != "outputFacets"}
                for each in event["outputs"]
            ]
        _write(folder, event | {"eventType": state, "eventTime": now()})


def lineage_event(evidence: Evidence, source: str | None, at: str) -> dict[str, Any]:
    """Return the event; the id of its run is that of the release, so that a rerun is the same run."""
    release = evidence.release
    of_input = [each for each in evidence.verdicts if each.check == "input"]
    of_release = [each for each in evidence.verdicts if each.check != "input"]
    rows = _facet("1-0-2", "OutputStatisticsOutputDatasetFacet", rowCount=evidence.counts.published)
    version = _facet("1-0-1", "DatasetVersionDatasetFacet", datasetVersion=release.release_id)
    read = [] if source is None else [{**_dataset(source), "inputFacets": _assertions(of_input)}]
    if read and release.snapshot is not None:
        facet = _facet("1-0-1", "DatasetVersionDatasetFacet", datasetVersion=release.snapshot)
        read[0]["facets"] = {"version": facet}
    made = {
        **_dataset(release.public_area),
        "facets": {"version": version, **_assertions(of_release)},
        "outputFacets": {"outputStatistics": rows},
    }
    return {
        "eventType": "RUNNING",
        "eventTime": at,
        "producer": _PRODUCER,
        "schemaURL": f"{_SPECIFICATION}/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": str(UUID(hex=release.release_id))},
        "job": {"namespace": NAMESPACE, "name": release.name},
        "inputs": read,
        "outputs": [made],
    }


def _dataset(place: str) -> dict[str, str]:
    """Return namespace and name of a path or address in the OpenLineage naming."""
    scheme, separator, rest = place.partition("://")
    if not separator:
        return {"namespace": "file", "name": place}
    container, _, name = rest.strip("/").partition("/")
    return {"namespace": f"{scheme}://{container}", "name": name or "/"}


def _assertions(verdicts: Iterable[Verdict]) -> dict[str, Any]:
    assertions = [
        {
            "assertion": each.metric,
            "name": MetricKey(each.metric, each.variable or "", each.dimension or 0).column,
            "success": each.passed,
            "severity": "error",
        }
        for each in verdicts
    ]
    facet = _facet("1-1-0", "DataQualityAssertionsDatasetFacet", assertions=assertions)
    return {"dataQualityAssertions": facet}


def _facet(version: str, name: str, **content: Any) -> dict[str, Any]:
    address = f"{_SPECIFICATION}/facets/{version}/{name}.json#/$defs/{name}"
    return {"_producer": _PRODUCER, "_schemaURL": address, **content}


def _write(folder: Path, event: dict[str, Any]) -> None:
    write_atomically(folder / FILE, json.dumps(event, indent=2, sort_keys=True))
