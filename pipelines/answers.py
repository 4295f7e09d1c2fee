"""Answers about a release: where it is, where its report is, and how to decide on a pending one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from microguard.pipelines.closing import closing_of
from microguard.pipelines.engine.command_result import CommandResult
from microguard.pipelines.evidence.joint import joint_of, with_counts
from microguard.pipelines.publication.areas import PAGE, Areas
from microguard.pipelines.publication.pending_approval import is_pending
from microguard.pipelines.publication.publish import published_already
from microguard.pipelines.publication.retention import Retained, retain


def published_answer(
    areas: Areas,
    release_id: str,
    text: str,
    retained: Retained | None = None,
    counts: Mapping[str, int] | None = None,
) -> CommandResult:
    """Return the answer about a published release: five lines, and before them what else was done.

    Parameters
    ----------
    text : str
        What was done, without its full stop.
    retained : Retained, optional
        Releases that were withdrawn with the publication.
    counts : mapping, optional
        Of the update of a series; by default those that the release was published with.
    """
    place, report = areas.public.place(release_id), f"{areas.record_place(release_id)}/{PAGE}"
    content = {"release_id": release_id, "release": place, "report": report}
    todo = f"the release is {place}, its report {report}"
    answer = _answer(areas, release_id, text, todo, content)
    answer = with_counts(answer, counts or joint_of(areas, release_id).get("night", {}))
    return answer if retained is None else retained.added_to(answer)


def pending_answer(areas: Areas, release_id: str, text: str) -> CommandResult:
    """Return the answer about a release that a person decides on: what to read, and how to decide."""
    record, release = areas.record_place(release_id), areas.public.place(release_id)
    report = f"{record}/{PAGE}"
    decide = f"microguard approve {record} --by NAME, or microguard reject {record} --by NAME"
    content = {"release_id": release_id, "release": release, "waiting": record, "report": report}
    text = f"{text}; the release is not public"
    answer = _answer(areas, release_id, text, f"read {report}, then {decide}", content)
    return with_counts(answer, joint_of(areas, release_id).get("night", {}))


def _answer(areas: Areas, release_id: str, text: str, todo: str, content: dict[str, Any]) -> CommandResult:
    """Return five lines: state and records, worst risk, loss, acceptances, what to do next."""
    found = closing_of(areas, release_id)
    first = f"{text}." if found is None else f"{text}: {found.records}."
    lines = [first, *(() if found is None else found.lines), f"Next: {todo}"]
    return CommandResult("\n".join(lines), content, f"{first} Next: {todo}")


def finished_answer(areas: Areas, release_id: str, name: str) -> CommandResult | None:
    """Return the answer if a release is public or pending already, None if it is to be made."""
    if published_already(areas, release_id):
        areas.forget_work(release_id)  # of a run that died after it had published
        text = "This job has published its release already"
        return published_answer(areas, release_id, text, retain(areas, name))
    if is_pending(areas, release_id):
        return pending_answer(areas, release_id, "This release is verified and waiting for approval already")
    return None
