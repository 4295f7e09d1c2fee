"""Which releases were made of the same records as tonight's, under whatever name, specification or area.

Two single releases of one source can be differenced, so the second is refused unless a steward accepts it.
Nights of one series stand beside each other, since they are audited together; tables of one evidence area
do, since a cell keeps the value it was published with. Copies of what was withdrawn remain: it counts, except
under the very name and place it was withdrawn from, which is a steward's decision to publish anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.identity import SERIES
from microguard.pipelines.publication.ledger import NEVER_PUBLIC, Entry, Ledger
from microguard.pipelines.publication.source_fingerprints.shared_ledger import (
    SharedEntry,
    SharedLedger,
    shared_ledger,
)
from microguard.pipelines.publication.source_fingerprints.source_fingerprint import (
    FILE,
    SHARED,
    SourceFingerprint,
    same_records,
    share_units,
)
from microguard.schemas.errors import GateRefused
from microguard.schemas.roles import PUBLISHED

#: Of tonight's columns, the share by which a release whose fingerprint is lost may be of the same records.
ALIKE_BY_NAME = 0.5
#: The evidence area of a release that its own area does not know any more.
FORGOTTEN = ""


@dataclass(frozen=True)
class Conflict:
    """A release that tonight's collides with.

    Attributes
    ----------
    release_id, name, path : str
        `path` is the folder it was published as.
    compared : bool
        Whether its records were found to be the same; else they cannot be compared.
    """

    release_id: str
    name: str
    path: str
    compared: bool


@dataclass(frozen=True)
class _Known:
    """A release that readers may have seen."""

    entry: SharedEntry
    file: str  # which of tonight's two fingerprints is by the same key
    fingerprint: Callable[[], SourceFingerprint | None]
    is_published: bool


def source_of(entry: Entry) -> str:
    """Name of the units behind a release."""
    return _declared(entry) or entry.name


def ledger_of(entry: Entry) -> SharedLedger | None:
    """The ledger that its evidence area shares with others, if any."""
    return shared_ledger(entry.ledger) if entry.ledger else None


def shared_entry(entry: Entry, areas: Areas) -> SharedEntry:
    """A release as other areas are to know it."""
    return SharedEntry(
        release_id=entry.release_id,
        name=entry.name,
        source=source_of(entry),
        declared=bool(_declared(entry)),
        content=str(entry.identity.get("content", "records")),
        series=str(entry.identity.get(SERIES, "")),
        public=entry.public or areas.public.name,
        evidence=areas.identity,
        columns=_columns(entry),
    )


def conflicts(tonight: Entry, areas: Areas) -> list[Conflict]:
    """Releases of tonight's source that it may not stand beside, by id.

    Parameters
    ----------
    tonight : Entry
        Its fingerprint lies in its evidence folder already, if it has one.
    areas : Areas
    """
    entry, fingerprints = shared_entry(tonight, areas), _fingerprints(tonight, areas)
    colliding = []
    for known in _known(tonight, areas):
        fingerprint = fingerprints[known.file]
        if not _may_stand_beside(entry, known):
            same = _same_source(entry, fingerprint, known)
            if same is not None:
                colliding.append(_conflict(known, same))
        elif entry.content == "table" and _by_another_key(fingerprint, known.fingerprint()):
            colliding.append(_conflict(known, False))  # cells of the same units are told by the key, too
    return sorted(colliding, key=lambda each: each.release_id)


def refuse_conflicts(tonight: Entry, areas: Areas) -> None:
    """Refuse a release of a source that has another one, unless a steward accepted it.

    Raises
    ------
    GateRefused
    """
    colliding = [] if tonight.successive == "accept" else conflicts(tonight, areas)
    if colliding:
        names = "; ".join(f"{each.release_id} ({each.name!r}, {each.path})" for each in colliding)
        unknown = sum(not each.compared for each in colliding)
        note = (
            f" With {unknown} of them the records cannot be compared: the source is one, or what was kept of "
            "them is lost while the columns are alike, or by another key than tonight's (of the file that "
            "MICROGUARD_KEY_FILE names, or of the evidence area)."
            if unknown
            else ""
        )
        raise GateRefused(
            f"The records of this run were published before, as {len(colliding)} release(s): {names}.{note} "
            "Two releases of the same records can be differenced, and copies of what was withdrawn remain. "
            'Publish what follows each other under one name with publish.series = "register" (or "append"), '
            'or set publish.successive to "accept" if a steward has decided that both may stand.'
        )


def same_under_another_source(entry: Entry, areas: Areas) -> list[Conflict]:
    """Releases whose records are those of a release, and whose source is called otherwise."""
    fingerprints, source = _fingerprints(entry, areas), source_of(entry)
    others = [known for known in _known(entry, areas) if known.entry.source != source]
    return [
        _conflict(known, True) for known in others if _alike(fingerprints[known.file], known.fingerprint())
    ]


def _fingerprints(entry: Entry, areas: Areas) -> dict[str, SourceFingerprint | None]:
    return {name: SourceFingerprint.read(areas.record(entry.release_id) / name) for name in (FILE, SHARED)}


def _alike(one: SourceFingerprint | None, other: SourceFingerprint | None) -> bool:
    return one is not None and other is not None and one.key == other.key and same_records(one, other)


def _conflict(known: _Known, compared: bool) -> Conflict:
    path = f"{known.entry.public}/{known.entry.release_id}"
    return Conflict(known.entry.release_id, known.entry.name, path, compared)


def _declared(entry: Entry) -> str:
    return str(entry.identity.get("specification", {}).get("release", {}).get("source") or "")


def _columns(entry: Entry) -> tuple[str, ...]:
    """Columns published of records, by the specification they were made by."""
    variables = entry.identity.get("specification", {}).get("variables", {})
    records = entry.identity.get("content", "records") == "records"
    names = [name for name, each in variables.items() if records and each.get("role") in PUBLISHED]
    return tuple(sorted(names))


def _known(tonight: Entry, areas: Areas) -> list[_Known]:
    """Every other release that readers may have seen: of this evidence area, and of those it shares with.

    One that the shared ledger has of this area, and its own ledger has not, was forgotten: a back-up was
    restored. It counts as one of another area, since nothing is known here of its cells or its units.
    """
    here = _known_here(areas)
    ids = {each.entry.release_id for each in here}
    ledger = ledger_of(tonight)
    others = [] if ledger is None else ledger.entries()
    shared = [
        _Known(
            replace(each, evidence=FORGOTTEN) if each.evidence == areas.identity else each,
            SHARED,
            partial(ledger.fingerprint, each.release_id),
            True,
        )
        for each in others
        if ledger is not None and each.release_id not in ids
    ]
    return [each for each in [*here, *shared] if each.entry.release_id != tonight.release_id]


def _known_here(areas: Areas) -> list[_Known]:
    ledger = Ledger(areas)
    seen = {each.release_id: each for each in ledger.entries() if each.event not in NEVER_PUBLIC}
    standing = {each.release_id for each in ledger.published()}
    return [
        _Known(
            shared_entry(each, areas),
            FILE,
            partial(SourceFingerprint.read, areas.record(each.release_id) / FILE),
            each.release_id in standing,
        )
        for each in seen.values()
    ]


def _may_stand_beside(tonight: SharedEntry, known: _Known) -> bool:
    other = known.entry
    if tonight.evidence != other.evidence:
        return False
    if tonight.content == other.content == "table":
        return True
    if tonight.name != other.name:
        return False
    if tonight.series and tonight.series == other.series:
        return True
    # One that stands here under this name was refused already, or accepted, unless a series begins beside it.
    return tonight.public == other.public and (not known.is_published or not tonight.series)


def _alike_by_name(tonight: SharedEntry, other: SharedEntry) -> bool:
    """Whether the columns of two releases of records are alike; where nobody knows, they may be."""
    if other.columns is None or tonight.columns is None:
        return tonight.content == other.content == "records"
    shared = len(set(tonight.columns) & set(other.columns))
    return shared >= max(2, ALIKE_BY_NAME * len(tonight.columns))


def _by_another_key(fingerprint: SourceFingerprint | None, other: SourceFingerprint | None) -> bool:
    """Whether two fingerprints cannot be compared: of one ledger all are by one key, unless that was lost."""
    return fingerprint is not None and other is not None and fingerprint.key != other.key


def _same_source(tonight: SharedEntry, fingerprint: SourceFingerprint | None, known: _Known) -> bool | None:
    """True where the records are the same, False where that cannot be known, None where they are others."""
    other = known.fingerprint()
    named_alike = tonight.source == known.entry.source
    if _by_another_key(fingerprint, other):
        return False
    if fingerprint is None or other is None:
        lost = other is None and _alike_by_name(tonight, known.entry)
        return False if named_alike or lost else None
    if same_records(fingerprint, other):
        return True
    if named_alike and tonight.declared and known.entry.declared:  # the same units, says the specification
        shared = share_units(fingerprint, other)
        return None if shared is False else bool(shared)
    return None
