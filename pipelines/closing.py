"""The lines that a publishing run ends with: records, worst risk, loss, acceptances, and what to do next.

Everything is read from the evidence of the release, so that a later call says the same: counts and shares,
and no value of a record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from microguard.pipelines.evidence.evidence import Counts, Evidence
from microguard.pipelines.evidence.headlines import Headlined, attacks_of, headline_sentences
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.rebuild_report import measured_release

#: Measures whose headlines say what the protection cost, in the order of the line.
LOSS = ("loss", "changed", "by_dimension", "exchanged_areas", "table", "noise", "suppression")


@dataclass(frozen=True)
class Closing:
    """What a run says of its release, in addition to its state.

    Attributes
    ----------
    records : str
        Records or cells read and published.
    lines : tuple of str
        Worst risk, loss and acceptances, a line each.
    """

    records: str
    lines: tuple[str, str, str]


def closing_of(areas: Areas, release_id: str) -> Closing | None:
    """Return the closing of a release by its evidence; None if the evidence cannot be read.

    Evidence that cannot be read changes nothing about the release: the caller then says where it is.
    """
    try:
        return closing(*measured_release(areas.record(release_id)))
    except Exception:  # a summary does not change what was published
        return None


def closing(evidence: Evidence, measures: Iterable[Headlined]) -> Closing:
    """Return the closing of a release by its evidence and the measures of its sections."""
    every = list(measures)
    attacks = attacks_of(evidence, every)
    worst = attacks[0].sentence if attacks else "no measure of this release counts what an attacker reaches."
    loss = " ".join(headline_sentences(evidence, [each for each in every if each.name in LOSS]))
    accepted = "; ".join(_accepted(evidence.release.specification, evidence.release.content))
    return Closing(
        records=" ".join(_records(evidence.counts, evidence.release.content)),
        lines=(
            f"Worst risk: {worst}",
            f"Loss: {loss or 'no measure of this release counts it.'}",
            f"Accepted by name: {accepted or 'nothing'}.",
        ),
    )


def _records(counts: Counts, content: str) -> Iterator[str]:
    """Yield the numbers of records read and published, and those left out by reason."""
    of_table = content == "table"
    yield f"{counts.input:,} {'rows' if of_table else 'records'} read,"
    yield f"{counts.published:,} {'cells' if of_table else 'records'} in the release"
    left_out = [f"rejected, {reason}: {count:,}" for reason, count in counts.rejected.items() if count]
    left_out += [f"suppressed: {counts.suppressed:,}"] if counts.suppressed else []
    left_out += [f"waiting: {counts.waiting:,}"] if counts.waiting else []
    left_out += [f"retained although not read: {counts.ghosts:,}"] if counts.ghosts else []
    yield f"({'; '.join(left_out) or 'none rejected or suppressed'})"


def _accepted(specification: Mapping[str, Any], content: str) -> Iterator[str]:
    """Yield what a steward accepted in the specification: limits, dependencies, other releases."""
    section = (specification.get("table") or {}) if content == "table" else specification
    for name, reason in ((section.get("quality") or {}).get("accept") or {}).items():
        yield f"{name} ({reason})"
    publish = specification.get("publish") or {}
    if publish.get("accept_dependencies"):
        yield f"columns that determine a protected one ({', '.join(publish['accept_dependencies'])})"
    if publish.get("successive") == "accept":
        yield "comparison with other releases of this name (publish.successive)"
