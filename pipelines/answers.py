"""Closing lines about a release: where it is, its report, and how to decide about a pending one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from microguard.pipelines.engine.command_result import CommandResult
from microguard.pipelines.evidence.evidence import Counts, Evidence, Headlined, attacks_of, headline_sentences
from microguard.pipelines.evidence.joint import joint_of, with_counts
from microguard.pipelines.publication.areas import PAGE, Areas
from microguard.pipelines.publication.pending_approval import is_pending
from microguard.pipelines.publication.publish import published_already
from microguard.pipelines.publication.retention import Retained, retain
from microguard.pipelines.rebuild_report import measured_release
from microguard.schemas.specification.loosened import loosened

#: Measures whose headlines describe the information loss, in the order of the closing line.
LOSS = ("loss", "changed", "by_dimension", "exchanged_areas", "table", "noise", "suppression")


@dataclass(frozen=True)
class Closing:
    """Content of the closing lines of a release, in addition to its status.

    Attributes
    ----------
    records : str
        Records or cells read and published.
    lines : tuple of str
        Worst risk, loss and acceptances, one line each.
    """

    records: str
    lines: tuple[str, str, str]


def closing_of(areas: Areas, release_id: str) -> Closing | None:
    """Return the closing lines of a release from its evidence; None if the evidence cannot be read.

    Unreadable evidence does not change the release: the caller then only states the place of the release.
    """
    try:
        return closing(*measured_release(areas.record(release_id)))
    except Exception:  # a failed summary must not change the published release
        return None


def closing(evidence: Evidence, measures: Iterable[Headlined]) -> Closing:
    """Return the closing lines of a release from its evidence and the measures in its sections."""
    every = list(measures)
    attacks = attacks_of(evidence, every)
    worst = (
        attacks[0].sentence if attacks else ("no measure of this release quantifies what an attacker learns.")
    )
    loss = " ".join(headline_sentences(evidence, [each for each in every if each.name in LOSS]))
    accepted = "; ".join(_accepted(evidence.release.specification, evidence.release.content))
    return Closing(
        records=" ".join(_records(evidence.counts, evidence.release.content)),
        lines=(
            f"Worst risk: {worst}",
            f"Loss: {loss or 'no measure of this release quantifies it.'}",
            f"Accepted by name: {accepted or 'nothing'}.",
        ),
    )


def _records(counts: Counts, content: str) -> Iterator[str]:
    """Yield the numbers of records that were read, published, and excluded by reason."""
    of_table = content == "table"
    yield f"{counts.input:,} {'rows' if of_table else 'records'} read,"
    yield f"{counts.published:,} {'cells' if of_table else 'records'} in the release"
    left_out = [f"rejected, {reason}: {count:,}" for reason, count in counts.rejected.items() if count]
    left_out += [f"suppressed: {counts.suppressed:,}"] if counts.suppressed else []
    left_out += [f"waiting: {counts.waiting:,}"] if counts.waiting else []
    left_out += [f"retained although not read: {counts.ghosts:,}"] if counts.ghosts else []
    yield f"({'; '.join(left_out) or 'none rejected or suppressed'})"


def _accepted(specification: Mapping[str, Any], content: str) -> Iterator[str]:
    """Yield what the specification accepts: limits, values looser than the default, dependencies, other
    releases.
    """
    section = (specification.get("table") or {}) if content == "table" else specification
    quality = section.get("quality") or {}
    looser = loosened(quality, of_table=content == "table")
    for name, reason in {**(quality.get("accept") or {}), **looser}.items():
        yield f"{name} ({reason})"
    publish = specification.get("publish") or {}
    if publish.get("accept_dependencies"):
        yield (
            "columns from which a protected one can be computed "
            f"({', '.join(publish['accept_dependencies'])})"
        )
    if publish.get("successive") == "accept":
        yield "comparison with other releases of this name (publish.successive)"


def published_answer(
    areas: Areas,
    release_id: str,
    text: str,
    retained: Retained | None = None,
    counts: Mapping[str, int] | None = None,
) -> CommandResult:
    """Return the closing lines of a published release: further actions, followed by five lines.

    Parameters
    ----------
    text : str
        Sentence that states what was done, without its full stop.
    retained : Retained, optional
        Releases that were withdrawn with the publication.
    counts : mapping, optional
        Counts of the update of a series; by default the counts stored at publication.
    """
    place, report = areas.public.place(release_id), f"{areas.record_place(release_id)}/{PAGE}"
    content = {"release_id": release_id, "release": place, "report": report}
    todo = f"the release is {place}, its report {report}"
    answer = _answer(areas, release_id, text, todo, content)
    answer = with_counts(answer, counts or joint_of(areas, release_id).get("night", {}))
    return answer if retained is None else retained.added_to(answer)


def pending_answer(areas: Areas, release_id: str, text: str) -> CommandResult:
    """Return the closing lines of a pending release: what to read, and how to decide."""
    record, release = areas.record_place(release_id), areas.public.place(release_id)
    report = f"{record}/{PAGE}"
    decide = f"microguard approve {record} --by NAME, or microguard reject {record} --by NAME"
    content = {"release_id": release_id, "release": release, "waiting": record, "report": report}
    text = f"{text}; the release is not public"
    answer = _answer(areas, release_id, text, f"read {report}, then {decide}", content)
    return with_counts(answer, joint_of(areas, release_id).get("night", {}))


def _answer(areas: Areas, release_id: str, text: str, todo: str, content: dict[str, Any]) -> CommandResult:
    """Return five lines: state and records, worst risk, information loss, accepted limits, next step."""
    found = closing_of(areas, release_id)
    first = f"{text}." if found is None else f"{text}: {found.records}."
    lines = [first, *(() if found is None else found.lines), f"Next: {todo}"]
    return CommandResult("\n".join(lines), content, f"{first} Next: {todo}")


def finished_answer(areas: Areas, release_id: str, name: str) -> CommandResult | None:
    """Return the closing lines if a release is already public or pending; None if it does not exist yet."""
    if published_already(areas, release_id):
        # remove the work folder of a run that was killed after it had published
        areas.forget_work(release_id)
        text = "This job has already published its release"
        return published_answer(areas, release_id, text, retain(areas, name))
    if is_pending(areas, release_id):
        return pending_answer(areas, release_id, "This release is already verified and pending approval")
    return None
