"""Measure workers that share only an object store: two compared with one, and one killed in every stage.

The first table compares the seconds of each stage. For the second table, all processes of a worker are
killed at a random time of a stage, and the job continues with the other worker.
"""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from tests.benchmarks.table import Table
from tests.pipelines.publication.storage.servers import S3
from tests.system.command import specification
from tests.system.machines import (
    Cluster,
    cluster,
    environment,
    in_store,
    machines_can_be_told_apart,
    released,
    spark_submit,
)

SEED = 7
#: Records and effort of the timed runs, and of the runs in which a worker is killed.
TIMED, KILLED = (1_000_000, "standard"), (2_000, "fast")
#: Approximate number of records per region; each region is a block, so there are many more than workers.
REGION = 5_000
#: Records of a row group, which one task reads.
ROWS = 100_000
#: Seconds of the shortest stage in the first table.
_SHORTEST = 0.1
NUMERIC = ("age", "income", "rent", "tax", "savings", "hours")

#: Function that receives the name of each stage when it starts.
Begun = Callable[[str], None]


def run(quick: bool = False) -> Iterator[Table]:
    """Return both tables, and check that all runs publish the same records."""
    assert machines_can_be_told_apart(), "This machine does not allow unshare --mount, which hides folders."
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # the server of the store logs every request
    with tempfile.TemporaryDirectory() as folder, cluster(Path(folder)) as made:
        made.add()
        yield _two_against_one(made, *(KILLED if quick else TIMED))
        yield _a_worker_killed(made, 2 if quick else None)


def _two_against_one(made: Cluster, records: int, effort: str) -> Table:
    with_one, first = _protected(made, "one", records, effort)
    made.add()
    with_two, second = _protected(made, "two", records, effort)
    pd.testing.assert_frame_equal(first, second)
    rows: list[tuple[object, ...]] = [
        (stage, seconds, with_two[stage], seconds / with_two[stage])
        for stage, seconds in with_one.items()
        if with_two[stage] >= _SHORTEST
    ]
    columns = ("stage", "seconds with one worker", "seconds with two", "ratio")
    return Table(f"Two workers of one core, {records:,} records, {effort}", columns, rows)


def _a_worker_killed(made: Cluster, number: int | None) -> Table:
    random = np.random.default_rng(SEED)
    undisturbed, answer = _protected(made, "undisturbed", *KILLED)
    rows: list[tuple[object, ...]] = []
    for stage in [name for name in undisturbed if name != "all stages"][:number]:
        moment, killed = float(random.random() * undisturbed[stage]), threading.Event()

        def kill(
            begun: str, stage: str = stage, moment: float = moment, killed: threading.Event = killed
        ) -> None:
            if begun == stage and not killed.is_set():
                killed.set()
                time.sleep(moment)
                made.workers[-1].stop(signal.SIGKILL)

        seconds, records = _protected(made, f"killed in {stage}".replace(" ", "-"), *KILLED, begun=kill)
        assert killed.is_set(), f"the stage {stage} did not begin"
        pd.testing.assert_frame_equal(answer, records)
        rows.append((stage, moment, undisturbed["all stages"], seconds["all stages"]))
        made.add()
    columns = ("stage", "killed after seconds", "seconds undisturbed", "seconds of the run")
    note = "Each run published the records of the undisturbed one."
    return Table(f"A worker of two killed in every stage, {KILLED[0]:,} records", columns, rows, note)


def _protected(
    made: Cluster, name: str, records: int, effort: str, begun: Begun = lambda _: None
) -> tuple[dict[str, float], pd.DataFrame]:
    """Return the seconds of each stage and of the whole run, and the published records."""
    folder = made.driver / name
    folder.mkdir()
    random = np.random.default_rng(SEED)
    frame = pd.DataFrame({each: random.lognormal(8, 1, records).round() for each in NUMERIC})
    regions = max(3, records // REGION)
    frame["region"] = random.choice([f"region {number}" for number in range(regions)], records)
    roles = [f'{each} = {{ role = "quasi_identifier", kind = "numeric" }}' for each in NUMERIC]
    roles.append('region = { role = "region" }')
    path = specification(folder, frame, "\n".join(roles), f'[method]\neffort = "{effort}"')
    frame.to_parquet(folder / "records.parquet", index=False, row_group_size=ROWS)
    lake = S3.make(made.server, f"lake-{name}")
    stored = in_store(path, lake, S3.make(made.server, f"agency-{name}"))
    seconds: dict[str, float] = {}
    said: list[str] = []
    command = spark_submit(made.address, stored, "--log", "json")
    with subprocess.Popen(  # spark-submit writes both streams of the job to standard output
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment()
    ) as job:
        assert job.stdout is not None
        for line in job.stdout:
            event = json.loads(line) if line.startswith("{") else {}
            if not event:
                said.append(line)
            if event.get("status") == "started":
                threading.Thread(target=begun, args=[event["stage"]]).start()
            elif "seconds" in event and "stage" in event:
                stage = event["stage"]
                seconds[stage] = seconds.get(stage, 0.0) + event["seconds"]
    assert job.returncode == 0, f"{name}: a run ended with {job.returncode}: {''.join(said[-5:])}"
    return seconds | {"all stages": sum(seconds.values())}, released(lake)
