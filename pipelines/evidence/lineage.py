"""An OpenLineage event of a run: its input, its output, and each verdict as an assertion.

The evidence has one run event (OpenLineage 2-0-2; facets version, dataQualityAssertions, outputStatistics and
columnLineage) in a file, to be loaded into a lineage catalogue. The event states which checks were met, never
the measured values, because measures against the originals are only for the agency. If a client of
OpenLineage is configured, `lineage_client` sends the same facets.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

from microguard.pipelines.engine.command_result import now
from microguard.pipelines.engine.files import read_json, write_atomically
from microguard.pipelines.evidence.evidence import Evidence
from microguard.pipelines.gate.gate import Verdict
from microguard.schemas.errors import MicroguardError
from microguard.schemas.requirements.requirement import MetricKey
from microguard.schemas.roles import PUBLISHED

FILE = "openlineage.json"
#: Namespace of the jobs; the name of a job is the name of its releases.
NAMESPACE = "microguard"
PRODUCER = "urn:microguard:run"
#: Environment variables, any of which configures the OpenLineage client.
CONFIGURED = (
    "OPENLINEAGE_URL",
    "OPENLINEAGE_CONFIG",
    "OPENLINEAGE__TRANSPORT",
    "OPENLINEAGE__TRANSPORT__TYPE",
)
_RESTORED = "Restore the release from its back-up, then run microguard report for it."
_SPECIFICATION = "https://openlineage.io/spec"

#: Pattern of a name in an expression of a derived column.
_WORD = re.compile(r"[^\W\d]\w*")

#: State of a run: verified but not decided yet, published, or refused by the gate or a person.
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
    """Write the final state of the run into its lineage event, if the folder has one."""
    path = folder / FILE
    if path.is_file():
        event = read_json(path, f"{FILE} of release {folder.name}", _RESTORED, "eventType", "outputs")
        if event["eventType"] == state:
            return
        if state == "FAIL":  # the folder has no event
            event["outputs"] = [
                {key: value for key, value in each.items() if key != "outputFacets"}
                for each in event["outputs"]
            ]
        _write(folder, event | {"eventType": state, "eventTime": now()})


def lineage_event(evidence: Evidence, source: str | None, at: str) -> dict[str, Any]:
    """Return the event; its run id is the release id, so that a rerun has the same run id."""
    release = evidence.release
    of_input = [each for each in evidence.verdicts if each.check == "input"]
    of_release = [each for each in evidence.verdicts if each.check != "input"]
    rows = _facet("1-0-2", "OutputStatisticsOutputDatasetFacet", rowCount=evidence.counts.published)
    version = _facet("1-0-1", "DatasetVersionDatasetFacet", datasetVersion=release.release_id)
    read = [] if source is None else [{**dataset_of(source), "inputFacets": _assertions(of_input)}]
    if read and release.snapshot is not None:
        facet = _facet("1-0-1", "DatasetVersionDatasetFacet", datasetVersion=release.snapshot)
        read[0]["facets"] = {"version": facet}
    made = {
        **dataset_of(release.public_area),
        "facets": {"version": version, **_assertions(of_release), **_columns(evidence, source)},
        "outputFacets": {"outputStatistics": rows},
    }
    return {
        "eventType": "RUNNING",
        "eventTime": at,
        "producer": PRODUCER,
        "schemaURL": f"{_SPECIFICATION}/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": str(UUID(hex=release.release_id))},
        "job": {"namespace": NAMESPACE, "name": release.name},
        "inputs": read,
        "outputs": [made],
    }


def _columns(evidence: Evidence, source: str | None) -> dict[str, Any]:
    """Return the column lineage of published records: the input columns of each published column.

    A protected column is marked as masked; all other columns are published unchanged or computed.
    """
    specification = evidence.release.specification
    variables, derived = specification.get("variables", {}), specification.get("derived", {})
    if source is None or evidence.release.content != "records" or not variables:
        return {}
    fields = {}
    for name, variable in variables.items():
        if variable["role"] not in PUBLISHED:
            continue
        made_of = [each for each in _WORD.findall(derived.get(name, "")) if each in variables] or [name]
        masked = any(variables[each]["role"] == "quasi_identifier" for each in made_of)
        transformation = {
            "type": "DIRECT",
            "subtype": "TRANSFORMATION" if masked or name in derived else "IDENTITY",
            "masking": masked,
        }
        fields[name] = {
            "inputFields": [
                {**dataset_of(source), "field": each, "transformations": [transformation]}
                for each in dict.fromkeys(made_of)
            ]
        }
    return {"columnLineage": _facet("1-2-0", "ColumnLineageDatasetFacet", fields=fields)}


def dataset_of(place: str) -> dict[str, str]:
    """Return namespace and name of a path or address in the OpenLineage naming."""
    scheme, separator, rest = place.partition("://")
    if not separator:
        return {"namespace": "file", "name": place}
    container, _, name = rest.strip("/").partition("/")
    return {"namespace": f"{scheme}://{container}", "name": name or "/"}


def sent_lineage(name: str, source: str | None) -> AbstractContextManager[Callable[[Path | None], None]]:
    """Send START and then COMPLETE or FAIL for the enclosed run, if a client is configured (`events_of_run`).

    Parameters
    ----------
    source : str or None
        Absolute path or address of the input; None for a frame of a session.
    """
    return _sent(name, [] if source is None else [dataset_of(source)])


def sent_lineage_of(folder: Path) -> AbstractContextManager[Callable[[Path | None], None]]:
    """Send the events of a decision about a release, with the job and the input from its evidence."""
    event: dict[str, Any] = {}
    with suppress(MicroguardError, OSError):  # lineage never decides about a release
        event = read_json(folder / FILE, FILE, _RESTORED)
    return _sent(event.get("job", {}).get("name", folder.name), event.get("inputs", []))


def _sent(name: str, read: list[dict[str, Any]]) -> AbstractContextManager[Callable[[Path | None], None]]:
    if not any(each in os.environ for each in CONFIGURED):
        return nullcontext(lambda folder: None)
    from microguard.pipelines.evidence.lineage_client import events_of_run

    return events_of_run(name, read)


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
    return {"_producer": PRODUCER, "_schemaURL": address, **content}


def _write(folder: Path, event: dict[str, Any]) -> None:
    write_atomically(folder / FILE, json.dumps(event, indent=2, sort_keys=True))
