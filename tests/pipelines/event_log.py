"""Read the jobs and scans of a part of a Spark session from an event log of this part."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

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
    """Record the jobs and scans inside the context."""
    work = Work()
    with _events(spark) as events:
        yield work
    _count(events, work)


@contextmanager
def _events(spark) -> Iterator[list[dict]]:
    """Return a list that has the events inside the context when the context ends.

    Only these events are logged: a log of the whole session takes a part of the time of every other test.
    """
    context, jvm = spark.sparkContext._jsc.sc(), spark.sparkContext._jvm
    events: list[dict] = []
    with TemporaryDirectory() as folder:
        settings = context.getConf()
        for name in ("compress", "rolling.enabled"):
            settings.set(f"spark.eventLog.{name}", "false")
        listener = jvm.org.apache.spark.scheduler.EventLoggingListener(
            context.applicationId(),
            jvm.scala.Option.empty(),
            jvm.java.net.URI(Path(folder).as_uri()),
            settings,
        )
        context.listenerBus().waitUntilEmpty()
        listener.start()
        context.addSparkListener(listener)
        try:
            yield events
        finally:
            context.listenerBus().waitUntilEmpty()
            context.removeSparkListener(listener)
            listener.stop()
        for log in Path(folder).glob("[!.]*"):  # files of checksums begin with a dot
            events += map(json.loads, log.read_text().splitlines())


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
    """Collect the words of all Spark plans inside the context.

    Words that differ between any two runs are left out: numbers of expressions and plans, addresses of
    functions, sizes of shuffles, names of random files and digests in hexadecimal.
    """
    longest = ("spark.sql.debug.maxToStringFields", "spark.sql.maxMetadataStringLength")
    before = {key: spark.conf.get(key) for key in longest}
    for key in longest:
        spark.conf.set(key, "100000")
    words: set[str] = set()
    try:
        with _events(spark) as events:
            _first_worker(spark)  # the session's background thread may still run this or have run it before
            yield words
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)
    for event in events:
        if event["Event"] in (_STARTED, _PLANNED):
            shown = json.dumps([event["physicalPlanDescription"], event["sparkPlanInfo"]])
            words |= set(_WORD.findall(_RANDOM.sub("", shown)))
