"""Send the lineage of a run with the OpenLineage client: START, and then COMPLETE or FAIL.

The client is configured by its environment (``OPENLINEAGE_URL``, ``OPENLINEAGE_CONFIG`` or
``OPENLINEAGE__TRANSPORT__TYPE``) and is an extra (``pip install "microguard[lineage]"``). An error while an
event is sent is logged by its type, and the run continues: lineage never decides about a release.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from microguard.pipelines.engine.command_result import now
from microguard.pipelines.engine.files import read_json
from microguard.pipelines.evidence.lineage import FILE, NAMESPACE, PRODUCER

_log = logging.getLogger("microguard.lineage")


@contextmanager
def events_of_run(name: str, read: list[dict[str, Any]]) -> Iterator[Callable[[Path | None], None]]:
    """Send START, and COMPLETE when the run ends, or FAIL if it is refused.

    Parameters
    ----------
    name : str
        Name of the releases.
    read : list of dict
        The inputs that are known before the run.

    Yields
    ------
    callable
        Call it with the evidence folder of the release that the run made or found, or None.
    """
    run_id, made = str(uuid.uuid4()), dict[str, Any]()

    def end(folder: Path | None) -> None:
        if folder is not None and (folder / FILE).is_file():
            made.update(read_json(folder / FILE, FILE, "Run microguard report for the release.", "eventType"))

    _send("START", run_id, name, read, [])
    try:
        yield end
    except BaseException:
        _send("FAIL", run_id, name, read, [])
        raise
    published = made.get("eventType") == "COMPLETE"  # in all other cases the release is pending approval
    _send("COMPLETE", run_id, name, made.get("inputs", read), made["outputs"] if published else [])


def _send(
    state: str, run_id: str, name: str, inputs: list[dict[str, Any]], outputs: list[dict[str, Any]]
) -> None:
    try:
        from openlineage.client import OpenLineageClient
        from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState

        client = OpenLineageClient()
        client.emit(
            RunEvent(
                eventType=RunState[state],
                eventTime=now(),
                run=Run(runId=run_id),
                job=Job(namespace=NAMESPACE, name=name),
                inputs=[InputDataset(**each) for each in inputs],
                outputs=[OutputDataset(**each) for each in outputs],
                producer=PRODUCER,
            )
        )
        client.close()
    except ImportError:
        _log.warning(
            "OpenLineage is configured in the environment: expected its client, found none. The run goes on "
            'without events. Install it (pip install "microguard[lineage]").'
        )
    except Exception as error:  # the text may contain an address with credentials
        _log.warning(
            "The OpenLineage event %s could not be sent (%s). The run continues.", state, type(error).__name__
        )
