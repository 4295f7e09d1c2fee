"""A source: all releases of the same units, records and tables, standing and withdrawn, and their audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from microguard.pipelines.audit.differencing.cells import (
    PublishedTable,
    count_disclosed_cells,
    is_table,
    read_table,
)
from microguard.pipelines.audit.differencing.classes import Classes
from microguard.pipelines.audit.differencing.exposure import JointExposure, joint_exposure
from microguard.pipelines.audit.differencing.members import Members, classes_from_members
from microguard.pipelines.audit.differencing.published import (
    PublishedRecords,
    is_records,
    read_microdata,
    read_records,
)
from microguard.pipelines.audit.differencing.repeated import SeenClasses, all_histories_have_k
from microguard.pipelines.engine.command_result import CommandResult
from microguard.pipelines.engine.files import damaged, read_json
from microguard.pipelines.publication.area_identity import known_area
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.identity import SERIES
from microguard.pipelines.publication.ledger import Entry, Ledger, public_area_of
from microguard.pipelines.publication.public_area import PublicArea
from microguard.pipelines.publication.source_fingerprints.conflicts import (
    Conflict,
    same_under_another_source,
)
from microguard.pipelines.publication.source_fingerprints.conflicts import source_of as source_of_entry
from microguard.pipelines.publication.stage import Staged
from microguard.pipelines.series.compared import COMPARED, checksums_of, compared_before, keep_comparison
from microguard.pipelines.series.membership import MEMBERS
from microguard.schemas.specification.model import Specification

#: Of a release of a series, in its evidence: the joint audit at its publication, and its night in counts.
JOINT = "joint.json"
#: Counts of a night that a person is told.
TOLD = ("units", "published", "comers", "leavers", "corrected", "waiting", "ghosts", "stale")


def source_of(specification: Specification) -> str:
    """Name of the units behind a release."""
    return specification.release.source or specification.release.name


def releases_of(areas: Areas, specification: Specification) -> list[Entry]:
    """Every release of the source that readers may have seen, oldest first; withdrawn ones too.

    A release of the same records belongs to the source, whatever source its specification names, and so does
    every night of a series of its name: a series goes on where its specification calls the source otherwise.
    """
    first: dict[str, Entry] = {}
    for entry in Ledger(areas).entries():
        if entry.event == "published" or _may_be_listed(entry):
            first.setdefault(entry.release_id, entry)
    of_source = {release_id for release_id, entry in first.items() if _is_of(entry, specification)}
    alike = {each.release_id for each in same_records_elsewhere(areas, specification)}
    return [entry for release_id, entry in first.items() if release_id in of_source | alike]


def accepted_of(releases: Sequence[Entry]) -> list[Entry]:
    """Those of the releases, oldest first, that a steward accepted beside each other: up to the last such."""
    accepted = [i for i, entry in enumerate(releases) if entry.successive == "accept"]
    return list(releases[: accepted[-1] + 1]) if accepted else []


def _may_be_listed(entry: Entry) -> bool:
    """Whether a night was given up while it was put into an object store: whoever listed it could read."""
    return entry.event == "abandoned" and SERIES in entry.identity and "://" in entry.public


def _is_of(entry: Entry, specification: Specification) -> bool:
    """Whether a release is of a specification's source, or a night of a series of its name."""
    night = SERIES in entry.identity and entry.name == specification.release.name
    return night or source_of_entry(entry) == source_of(specification)


def same_records_elsewhere(areas: Areas, specification: Specification) -> list[Conflict]:
    """Releases of the source's records under another source, in areas that share a ledger too."""
    published = [entry for entry in Ledger(areas).entries() if entry.event == "published"]
    newest = {entry.name: entry for entry in published if _is_of(entry, specification)}
    by_id = {
        each.release_id: each
        for entry in newest.values()
        for each in same_under_another_source(replace(entry, ledger=specification.shared_ledger or ""), areas)
    }
    return [by_id[release_id] for release_id in sorted(by_id)]


def joint_of(areas: Areas, release_id: str) -> dict[str, Any]:
    """The joint audit of a release of a series and the counts of its night; empty of any other release."""
    path = areas.record(release_id) / JOINT
    if not path.is_file():
        return {}
    return read_json(path, f"{JOINT} of release {release_id}", "Restore the evidence area from its back-up.")


def with_night(outcome: CommandResult, night: Mapping[str, int]) -> CommandResult:
    """Add the counts of a night to an answer, those of `TOLD` for a person; without any it stays as it is."""
    if not night:
        return outcome
    told = ", ".join(f"{count} {name}" for name, count in night.items() if name in TOLD)
    return CommandResult(f"{outcome.text}\nNight: {told}", outcome.content | {"night": dict(night)})


def joint_exposure_of(
    areas: Areas, entries: Sequence[Entry], staged: Staged | None = None, *, anew: bool = False
) -> JointExposure:
    """Audit releases of one source together, and beside them one that is staged.

    Every public area of the releases is at its place (`AreaNotThere`, `FileDamaged`).

    A release whose map of members is lost, was changed, or does not describe its published files, is not
    compared. As long as every history has k units, only the classes that are new in a release are held: a
    night needs no more memory for the many before it.

    Parameters
    ----------
    areas : Areas
    entries : sequence of Entry
    staged : Staged, optional
        Its map lies in the evidence already.
    anew : bool
        Compare every map with its files, also those that were compared before and have not changed since,
        and audit all classes of all of them.
    """
    seen = _seen(areas, entries, staged, anew, None if anew else SeenClasses())
    classes = seen.classes()
    if seen.repeated is not None and seen.repeated.any and not all_histories_have_k(classes):
        seen = _seen(areas, entries, staged, anew, None)
        classes = seen.classes()
    return joint_exposure(
        classes, cells=count_disclosed_cells(seen.tables, seen.records), not_compared=seen.lost
    )


def _seen(
    areas: Areas, entries: Sequence[Entry], staged: Staged | None, anew: bool, repeated: SeenClasses | None
) -> _Seen:
    with_tables = any(entry.identity.get("content") == "table" for entry in entries)
    seen = _Seen(areas, anew, with_tables, repeated)
    for entry in entries:
        if staged is None or entry.release_id != staged.files.release_id:  # one that is made again
            seen.add(entry)
    if staged is not None:
        seen.add_staged(staged)
    return seen


@dataclass
class _Seen:
    """What readers have seen of a source, release by release.

    Attributes
    ----------
    anew : bool
        Whether maps that were compared are compared again.
    with_tables : bool
        Whether records are compared with tables, too, and so are held.
    repeated : Repeated or None
        Leaves out of a map the classes that an earlier one has; None where every map is held as it is.
    lost : list of str
        Ids of releases that cannot be compared.
    """

    areas: Areas
    anew: bool
    with_tables: bool
    repeated: SeenClasses | None
    maps: list[Members] = field(default_factory=list)
    tables: list[PublishedTable] = field(default_factory=list)
    records: list[PublishedRecords] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def classes(self) -> list[Classes]:
        """Classes of all maps."""
        return classes_from_members(self.maps) if self.maps else []

    def add(self, entry: Entry) -> None:
        """A release that was published; nothing but its map is left of one that was withdrawn."""
        area = public_area_of(entry, self.areas)
        known_area(area)
        public: PublicArea = area.public
        if not public.exists(entry.release_id):
            self._add(entry.release_id, None, None)
            return
        with public.reading(entry.release_id) as folder:
            try:
                table, records = is_table(folder), is_records(folder)
            except (ValueError, TypeError):
                raise damaged(
                    f"manifest.json of release {entry.release_id}",
                    "Withdraw the release, and run its job again.",
                ) from None
            if table:
                self.tables.append(read_table(folder))
            elif records:
                self._add(entry.release_id, lambda: read_records(folder), checksums_of(folder))
            else:
                self.lost.append(entry.release_id)

    def add_staged(self, staged: Staged) -> None:
        """A release in the making; its comparison is kept for the nights to come."""
        release_id = staged.files.release_id
        members = self.areas.record(release_id) / MEMBERS
        (members / COMPARED).unlink(missing_ok=True)  # of a run that died: this map is another
        if self._add(release_id, lambda: _staged_records(staged), None):
            keep_comparison(members, staged.files.checksums, self.areas.key())

    def _add(
        self, release_id: str, read: Callable[[], PublishedRecords] | None, files: Mapping[str, str] | None
    ) -> bool:
        """Whether the release can be compared; `read` gives its published records, if it stands."""
        folder = self.areas.record(release_id) / MEMBERS
        known = compared_before(folder, files, self.areas.key())
        compare = self.anew or known != "yes"
        members = None if known == "map changed" else _map_in(folder)
        published = read() if read is not None and (compare or self.with_tables) else None
        if members is None or (compare and published is not None and not members.describes(published)):
            self.lost.append(release_id)
            return False
        self.maps.append(members if self.repeated is None else self.repeated.new_in(members))
        if published is not None and self.with_tables:
            self.records.append(published)
        return True


def _map_in(folder: Path) -> Members | None:
    """The map in a folder; None where there is none that can be read."""
    try:
        return Members.read(folder)
    except (ValueError, KeyError, TypeError):
        return None


def _staged_records(staged: Staged) -> PublishedRecords:
    contract = staged.contract
    partition = None if contract.partition_by is None else contract.schema.field(contract.partition_by)
    table = read_microdata(staged.folder, contract.names, partition)
    records = table.to_pandas(strings_to_categorical=True)
    return PublishedRecords(staged.files.release_id, MappingProxyType({}), records, MappingProxyType({}))
