"""Find the releases that were made of the same records, under any name, specification or area.

The difference of two single releases of one source can disclose values, so the second is refused unless a
steward accepts it. Releases of one series may be published together, because they are audited together.
Tables of one evidence area may be published together, because a cell keeps its published value. A withdrawn
release counts, because readers may have copies. The exception is the name and place from which it was
withdrawn: there a steward decides to publish again.
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

#: Share of the columns that a release with a lost fingerprint must have in common to count as the same
#: records.
ALIKE_BY_NAME = 0.5
#: Evidence area of a release that is missing in the ledger of its own area.
FORGOTTEN = ""


@dataclass(frozen=True)
class Conflict:
    """A release that conflicts with the new one.

    Attributes
    ----------
    release_id, name, path : str
        `path` is the folder in which it was published.
    compared : bool
        Whether its records were compared and are the same; False if they cannot be compared.
    """

    release_id: str
    name: str
    path: str
    compared: bool


@dataclass(frozen=True)
class _Known:
    """An earlier release that readers may have seen."""

    entry: SharedEntry
    file: str  # the new release's fingerprint with the key of this earlier release
    fingerprint: Callable[[], SourceFingerprint | None]
    is_published: bool


def source_of(entry: Entry) -> str:
    """Return the name of the source of a release."""
    return _declared(entry) or entry.name


def ledger_of(entry: Entry) -> SharedLedger | None:
    """Return the shared ledger of the release's evidence area; None without one."""
    return shared_ledger(entry.ledger) if entry.ledger else None


def shared_entry(entry: Entry, areas: Areas) -> SharedEntry:
    """Return the entry that a release gets in the shared ledger."""
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


def conflicts(new: Entry, areas: Areas) -> list[Conflict]:
    """Return the releases of the same source that conflict with a release, by id.

    Parameters
    ----------
    new : Entry
        The release; its fingerprint, if any, is already in its evidence folder.
    areas : Areas
    """
    entry, fingerprints = shared_entry(new, areas), _fingerprints(new, areas)
    conflicting = []
    for known in _known(new, areas):
        fingerprint = fingerprints[known.file]
        if not _may_stand_beside(entry, known):
            same = _same_source(entry, fingerprint, known)
            if same is not None:
                conflicting.append(_conflict(known, same))
        elif entry.content == "table" and _by_another_key(fingerprint, known.fingerprint()):
            conflicting.append(_conflict(known, False))  # only with the same key are cells recognised
    return sorted(conflicting, key=lambda each: each.release_id)


def refuse_conflicts(new: Entry, areas: Areas) -> None:
    """Refuse a release if its source has another release, unless a steward accepted this.

    Raises
    ------
    GateRefused
    """
    conflicting = [] if new.successive == "accept" else conflicts(new, areas)
    if conflicting:
        names = "; ".join(f"{each.release_id} ({each.name!r}, {each.path})" for each in conflicting)
        unknown = sum(not each.compared for each in conflicting)
        note = (
            f" The records of {unknown} of them cannot be compared: the source has the same name, or the "
            "fingerprint is lost and the columns are alike, or it was made with another key (of the file "
            "that MICROGUARD_KEY_FILE names, or of the evidence area)."
            if unknown
            else ""
        )
        raise GateRefused(
            "[release] source: expected records that no other release has, found them published before, as "
            f"{len(conflicting)} release(s): {names}.{note} Two releases of the same records can be "
            "differenced, and copies of withdrawn ones remain. Publish successive releases under one name "
            "with publish.series = 'register' or 'append' (by microaggregation), or set publish.successive "
            "to 'accept' if a steward has decided that both may remain published."
        )


def same_under_another_source(entry: Entry, areas: Areas) -> list[Conflict]:
    """Return the releases of the same records whose sources have another name."""
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
    """Return the published columns of records, according to the specification in the entry."""
    variables = entry.identity.get("specification", {}).get("variables", {})
    records = entry.identity.get("content", "records") == "records"
    names = [name for name, each in variables.items() if records and each.get("role") in PUBLISHED]
    return tuple(sorted(names))


def _known(new: Entry, areas: Areas) -> list[_Known]:
    """Return all other releases that readers may have seen, of this evidence area and of the shared ledger.

    A release of this area that only the shared ledger has was lost when a back-up was restored. It is treated
    like a release of another area, because its cells and units are not known here.
    """
    here = _known_here(areas)
    ids = {each.entry.release_id for each in here}
    ledger = ledger_of(new)
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
    return [each for each in [*here, *shared] if each.entry.release_id != new.release_id]


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


def _may_stand_beside(new: SharedEntry, known: _Known) -> bool:
    other = known.entry
    if new.evidence != other.evidence:
        return False
    if new.content == other.content == "table":
        return True
    if new.name != other.name:
        return False
    if new.series and new.series == other.series:
        return True
    # An earlier release of this name was already refused or accepted elsewhere, unless a series begins now.
    return new.public == other.public and (not known.is_published or not new.series)


def _alike_by_name(new: SharedEntry, other: SharedEntry) -> bool:
    """Return whether the columns of two releases of records are similar; unknown columns count as similar."""
    if other.columns is None or new.columns is None:
        return new.content == other.content == "records"
    shared = len(set(new.columns) & set(other.columns))
    return shared >= max(2, ALIKE_BY_NAME * len(new.columns))


def _by_another_key(fingerprint: SourceFingerprint | None, other: SourceFingerprint | None) -> bool:
    """Return whether two fingerprints have different keys, for example because one key was lost."""
    return fingerprint is not None and other is not None and fingerprint.key != other.key


def _same_source(new: SharedEntry, fingerprint: SourceFingerprint | None, known: _Known) -> bool | None:
    """Return True if the records are the same, False if they cannot be compared, None if they differ."""
    other = known.fingerprint()
    named_alike = new.source == known.entry.source
    if _by_another_key(fingerprint, other):
        return False
    if fingerprint is None or other is None:
        lost = other is None and _alike_by_name(new, known.entry)
        return False if named_alike or lost else None
    if same_records(fingerprint, other):
        return True
    if named_alike and new.declared and known.entry.declared:  # stated in the specification
        shared = share_units(fingerprint, other)
        return None if shared is False else bool(shared)
    return None
