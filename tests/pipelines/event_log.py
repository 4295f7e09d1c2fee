"""Read the jobs and scans of a part of a Spark session from its event log."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from microguard.pipelines.engine.session import _first_worker

_STARTED = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart"
_PLANNED = "org.apache.spark.sql.execution.ui.SparkListenerSQLAdaptiveExecutionUpdate"
ROWS = "number of output rows"
#: Texts that differ between runs of the same input.
_RANDOM = re.compile(
    r"#\d+L?|_common_expr_\d+|\bx_\d+|plan_id=\d+|accumulatorId\W+\d+|RDD\[\d+|@[0-9a-f]+|Lambda\S*|"
    r"sizeInBytes=[\d.E+]+ \w+|[0-9a-f]{16,}|codegen id : \d+"
)
_WORD = re.compile(r"[\w.'+-]+")


@dataclass
class Work:
    """Jobs, stages and scans of a session.

    Attributes
    ----------
    jobs : int
    stages : int
        Stages that wrote a shuffle, and those that ended a job.
    scans : mapping of place to list of int
        Records of each scan of files, by their place as the plan shows it.
    """

    jobs: int = 0
    stages: int = 0
    scans: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def scans_below(self, folder: Path | str) -> list[int]:
        """Return the records of each scan of files below a folder."""
        return [rows for place, each in self.scans.items() if str(folder) in place for rows in each]


@contextmanager
def recorded(spark) -> Iterator[Work]:
    """Record the jobs and scans inside the context; the session must write an event log."""
    (log,) = Path(spark.conf.get("spark.eventLog.dir").removeprefix("file://")).iterdir()
    _settled(spark)
    start, work = log.stat().st_size, Work()
    yield work
    _settled(spark)
    with open(log, encoding="utf-8") as lines:
        lines.seek(start)
        _count([json.loads(line) for line in lines], work)


def _settled(spark) -> None:
    """Wait until all events are in the log."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()


def _count(events: list[dict], work: Work) -> None:
    places: dict[int, str] = {}
    rows: dict[int, int] = defaultdict(int)
    for event in events:
        if event["Event"] in (_STARTED, _PLANNED):
            places |= dict(_scans(event["sparkPlanInfo"]))
        elif event["Event"] == "SparkListenerJobStart":
            work.jobs += 1
        elif event["Event"] == "SparkListenerStageCompleted":
            work.stages += 1
        elif event["Event"] == "SparkListenerTaskEnd":
            for update in event["Task Info"]["Accumulables"]:
                rows[update["ID"]] += int(update["Update"]) if update["ID"] in places else 0
    for metric, place in places.items():
        if rows[metric]:
            work.scans[place].append(rows[metric])


def _scans(plan: dict) -> Iterator[tuple[int, str]]:
    """Return the metric and the place of each scan of files in a plan."""
    if plan["nodeName"].startswith("Scan "):
        place = plan.get("metadata", {}).get("Location", "")
        yield from ((each["accumulatorId"], place) for each in plan["metrics"] if each["name"] == ROWS)
    for child in plan["children"]:
        yield from _scans(child)


@contextmanager
def planned(spark) -> Iterator[set[str]]:
    """Collect the words of all Spark plans inside the context; the session must write an event log.

    Words that differ between any two runs are left out: numbers of expressions and plans, addresses of
    functions, sizes of shuffles, names of random files and digests in hexadecimal.
    """
    (log,) = Path(spark.conf.get("spark.eventLog.dir").removeprefix("file://")).iterdir()
    longest = ("spark.sql.debug.maxToStringFields", "spark.sql.maxMetadataStringLength")
    before = {key: spark.conf.get(key) for key in longest}
    for key in longest:
        spark.conf.set(key, "100000")
    _settled(spark)
    start = log.stat().st_size
    words: set[str] = set()
    try:
        _first_worker(spark)  # the session's background thread may still run this or have run it before
        yield words
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)
    _settled(spark)
    with open(log, encoding="utf-8") as lines:
        lines.seek(start)
        for line in lines:
            event = json.loads(line)
            if event["Event"] in (_STARTED, _PLANNED):
                shown = json.dumps([event["physicalPlanDescription"], event["sparkPlanInfo"]])
                words |= set(_WORD.findall(_RANDOM.sub("", shown)))
