"""Source: all releases of the same units, public or withdrawn, and their joint audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
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
    rounding_unit,
)
from microguard.pipelines.audit.differencing.repeated import SeenClasses, all_histories_have_k
from microguard.pipelines.audit.periods import same_period
from microguard.pipelines.engine.files import damaged
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
from microguard.pipelines.series.membership import MEMBERS
from microguard.pipelines.series.verified_maps import COMPARED, checksums_of, keep_verified, verified_before
from microguard.schemas.specification.model import Specification


def source_of(specification: Specification) -> str:
    """Return the name of a release's source, which denotes the population of its units."""
    return specification.release.source or specification.release.name


def releases_of(areas: Areas, specification: Specification) -> list[Entry]:
    """Return every release of the source that was ever public, oldest first.

    A release of the same records belongs to the source, even if its specification names another source. Every
    update of a series of this name belongs to it too, even if the specification now names another source.
    """
    first: dict[str, Entry] = {}
    for entry in Ledger(areas).entries():
        if entry.event == "published" or _may_be_listed(entry):
            first.setdefault(entry.release_id, entry)
    of_source = {release_id for release_id, entry in first.items() if _is_of(entry, specification)}
    alike = {each.release_id for each in same_records_elsewhere(areas, specification)}
    return [entry for release_id, entry in first.items() if release_id in of_source | alike]


def accepted_of(releases: Sequence[Entry]) -> list[Entry]:
    """Return the releases, oldest first, up to the last one that a steward accepted."""
    accepted = [i for i, entry in enumerate(releases) if entry.successive == "accept"]
    return list(releases[: accepted[-1] + 1]) if accepted else []


def _may_be_listed(entry: Entry) -> bool:
    """Return whether an abandoned update is in an object store, where readers could have listed and
    read it.
    """
    return entry.event == "abandoned" and SERIES in entry.identity and "://" in entry.public


def _is_of(entry: Entry, specification: Specification) -> bool:
    """Return whether a release has this specification's source, or is an update of a series of its name."""
    update = SERIES in entry.identity and entry.name == specification.release.name
    return update or source_of_entry(entry) == source_of(specification)


def same_records_elsewhere(areas: Areas, specification: Specification) -> list[Conflict]:
    """Return the releases of the same records under other source names, also those in a shared ledger."""
    published = [entry for entry in Ledger(areas).entries() if entry.event == "published"]
    newest = {entry.name: entry for entry in published if _is_of(entry, specification)}
    by_id = {
        each.release_id: each
        for entry in newest.values()
        for each in same_under_another_source(replace(entry, ledger=specification.shared_ledger or ""), areas)
    }
    return [by_id[release_id] for release_id in sorted(by_id)]


def joint_exposure_of(
    areas: Areas,
    entries: Sequence[Entry],
    staged: Staged | None = None,
    *,
    period: str | None = None,
    compare_again: bool = False,
) -> JointExposure:
    """Audit the releases of one source together, including a staged release.

    A release is not compared if its map of members is lost, was changed, or does not describe its published
    files. As long as every history has k units, only the new classes of a release are kept in memory: the
    memory of an update does not grow with the number of earlier updates.

    Parameters
    ----------
    areas : Areas
    entries : sequence of Entry
    staged : Staged, optional
        The staged release; its map is in the evidence already.
    period : str or None
        Period of the staged release.
    compare_again : bool
        Compare every map with its files, also maps that have not changed since their last comparison, and
        audit all classes of all releases.

    Raises
    ------
    AreaNotThere, FileDamaged
        If the public area of a release is missing at its place.
    """
    seen = _public_releases(
        areas, entries, staged, period, compare_again, None if compare_again else SeenClasses()
    )
    classes = seen.classes()
    if seen.repeated is not None and seen.repeated.any and not all_histories_have_k(classes):
        seen = _public_releases(areas, entries, staged, period, compare_again, None)
        classes = seen.classes()
    return joint_exposure(classes, cells=seen.disclosed_cells(), not_compared=seen.lost)


def _public_releases(
    areas: Areas,
    entries: Sequence[Entry],
    staged: Staged | None,
    period: str | None,
    compare_again: bool,
    repeated: SeenClasses | None,
) -> _PublicReleases:
    with_tables = any(entry.identity.get("content") == "table" for entry in entries)
    seen = _PublicReleases(areas, compare_again, with_tables, repeated)
    for entry in entries:
        # a release that is made again is not compared with its earlier copy
        if staged is None or entry.release_id != staged.files.release_id:
            seen.add(entry)
    if staged is not None:
        seen.add_staged(staged, period or "")
    return seen


@dataclass
class _PublicReleases:
    """Published files of a source, read one release at a time.

    Attributes
    ----------
    compare_again : bool
        Whether maps that were compared before are compared again.
    with_tables : bool
        Whether records are kept, to be compared with tables.
    repeated : SeenClasses or None
        Removes from a map the classes that an earlier map has; None if maps are kept unchanged.
    tables, records : dict of str to list
        Tables, and records that are compared with them, by period.
    lost : list of str
        Ids of releases that cannot be compared.
    """

    areas: Areas
    compare_again: bool
    with_tables: bool
    repeated: SeenClasses | None
    maps: list[Members] = field(default_factory=list)
    tables: dict[str, list[PublishedTable]] = field(default_factory=dict)
    records: dict[str, list[PublishedRecords]] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)

    def classes(self) -> list[Classes]:
        """Return the classes in all maps of members."""
        return classes_from_members(self.maps) if self.maps else []

    def disclosed_cells(self) -> int:
        """Count the table cells that records of the same period disclose; a release without a period matches
        any.
        """
        return sum(
            count_disclosed_cells(tables, records)
            for of_tables, tables in self.tables.items()
            for of_records, records in self.records.items()
            if same_period(of_tables, of_records)
        )

    def add(self, entry: Entry) -> None:
        """Add a published release; for a withdrawn release, add only its map."""
        area = public_area_of(entry, self.areas)
        known_area(area)
        public: PublicArea = area.public
        period = str(entry.identity.get("specification", {}).get("release", {}).get("period") or "")
        if not public.exists(entry.release_id):
            self._add(entry.release_id, period, None, None)
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
                self.tables.setdefault(period, []).append(read_table(folder))
            elif records:
                self._add(entry.release_id, period, lambda: read_records(folder), checksums_of(folder))
            else:
                self.lost.append(entry.release_id)

    def add_staged(self, staged: Staged, period: str) -> None:
        """Add a staged release, and store the comparison of its map for later updates."""
        release_id = staged.files.release_id
        members = self.areas.record(release_id) / MEMBERS
        (members / COMPARED).unlink(missing_ok=True)  # left by a killed run that had another map
        if self._add(release_id, period, lambda: _staged_records(staged, _map_in(members)), None):
            keep_verified(members, staged.files.checksums, self.areas.key())

    def _add(
        self,
        release_id: str,
        period: str,
        read: Callable[[], PublishedRecords] | None,
        files: Mapping[str, str] | None,
    ) -> bool:
        """Add a map and return whether it can be compared; `read` returns the records of a public release."""
        folder = self.areas.record(release_id) / MEMBERS
        known = verified_before(folder, files, self.areas.key())
        compare = self.compare_again or known != "yes"
        members = None if known == "map changed" else _map_in(folder)
        published = read() if read is not None and (compare or self.with_tables) else None
        if members is None or (compare and published is not None and not members.describes(published)):
            self.lost.append(release_id)
            return False
        self.maps.append(members if self.repeated is None else self.repeated.new_in(members))
        if published is not None and self.with_tables:
            self.records.setdefault(period, []).append(published)
        return True


def _map_in(folder: Path) -> Members | None:
    """Read the map in a folder; return None if there is no readable map."""
    try:
        return Members.read(folder)
    except (ValueError, KeyError, TypeError):
        return None


def _staged_records(staged: Staged, members: Members | None) -> PublishedRecords:
    """Read staged records; the means and the region, which the manifest will state, are taken from
    the map.
    """
    contract = staged.contract
    partition = None if contract.partition_by is None else contract.schema.field(contract.partition_by)
    table = read_microdata(staged.folder, contract.names, partition)
    records = table.to_pandas(strings_to_categorical=True)
    about: dict[str, Any] = members.about if members is not None else {"region": None, "means": []}
    region = [about["region"]] if about["region"] else []
    manifest = {
        "method": {"representative": "mean"},
        "columns": [{"name": name, "protected": True, "kind": "numeric"} for name in about["means"]],
        "guarantee": {"groups": [{"with_region": region}]},
    }
    rounding = {name: rounding_unit(table[name]) for name in about["means"]}
    return PublishedRecords(staged.files.release_id, manifest, records, rounding)
