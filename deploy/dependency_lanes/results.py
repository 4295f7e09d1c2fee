"""Results of jobs, and their comparison between lanes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SAME, NOT_COMPARED, REFUSED = "same", "-", "refused by name"
SAME_ID = "same release id, other values"
#: Start of the message about a command that was ended after its time limit.
NOT_FINISHED = "not finished"


@dataclass(frozen=True)
class JobResult:
    """Result of one job of a lane.

    Attributes
    ----------
    exit_code : int
        Of the first command that failed, else 0; that of the independent count is 1 if it does not accept.
    seconds : float
    message : str
        The failed command and the end of its standard error.
    release_ids : tuple of str
        Of its releases, in their order.
    values : tuple of str
        The published rows as sorted lines.
    refusal : str
        Why microguard refused the job with these versions, where that is what it should do.
    """

    exit_code: int
    seconds: float = 0.0
    message: str = ""
    release_ids: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    refusal: str = ""


Results = Mapping[str, Mapping[str, JobResult]]
"""Lane -> job -> result."""


def reference_lane(lanes: Sequence[str]) -> str:
    """Return the lane that others are compared with: the first pinned lane, else the first lane."""
    return next((lane for lane in lanes if lane.startswith("pinned")), lanes[0])


def compare(result: JobResult | None, reference: JobResult | None) -> str:
    """Compare the published values of a job with those of the reference lane.

    A release id identifies one result: the same id with other values is a fault, other values under another
    id are not.
    """
    if result is not None and result.refusal:
        return REFUSED
    if result is None or reference is None or not (result.values and reference.values):
        return NOT_COMPARED
    if result.values == reference.values:
        return SAME
    differing = (Counter(result.values) - Counter(reference.values)).total()
    rows = f"{differing} of {len(result.values)} rows"
    if set(result.release_ids) & set(reference.release_ids):
        return f"{SAME_ID} ({rows})"
    return f"other values and other release id ({rows})"


def table_of(results: Results) -> str:
    """Return one line per lane and job: exit code, seconds and values; then the messages of failures."""
    reference = reference_lane(list(results))
    rows = [("lane", "job", "exit", "seconds", f"values compared with {reference}")]
    failures = []
    for lane, jobs in results.items():
        for job, result in jobs.items():
            values = compare(result, results[reference].get(job))
            rows.append((lane, job, str(result.exit_code), f"{result.seconds:.0f}", values))
            if result.message:
                failures.append(f"{lane} {job}: {result.message}")
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(
            word.rjust(width) if column in (2, 3) else word.ljust(width)
            for column, (word, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join([*lines, *(["", *failures] if failures else [])])


def exit_code_of(results: Results) -> int:
    """Return 1 if a job failed or one release id has two different values, else 0."""
    reference = results[reference_lane(list(results))]
    failed = any(
        result.exit_code or compare(result, reference.get(job)).startswith(SAME_ID)
        for jobs in results.values()
        for job, result in jobs.items()
    )
    return int(failed)
