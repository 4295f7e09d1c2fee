"""Iceberg table of a public area in a catalogue: its snapshots are releases and have their names as tags.

The table registers the files of the releases at their place and copies none. Its metadata files are below
`FOLDER` of the public area, in a folder or in an object store. One commit makes a release the newest state of
the branch ``main`` and gives the snapshot a tag with the id of the release.

To remove a release, one commit writes the snapshots of the remaining releases again, on a branch without
ancestors, and expires every earlier snapshot. Readers see the table either before or after this commit. Then
every file of the table that no snapshot refers to is deleted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq
from microguard.pipelines.audit import catalog as audit
from microguard.pipelines.engine.catalogs import answering, open_catalog
from microguard.pipelines.publication.formats.iceberg import (
    releases_of,
    replace_files,
    schema_of,
)
from microguard.pipelines.publication.formats.steps import record_files, record_files_of_all
from microguard.pipelines.publication.public_area import PublicArea
from microguard.schemas.errors import ProtectionFailed, SpecificationError
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.io import load_file_io
from pyiceberg.table import Table, TableProperties, Transaction
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.update.snapshot import ExpireSnapshots, ManageSnapshots

#: Folder of the public area that contains the metadata of its tables in catalogues.
FOLDER = "catalog"
#: Branch on which the remaining releases are committed again; readers do not use it.
_ANEW = "microguard-anew"
KEY = "[publish] catalog"


@dataclass(frozen=True)
class CatalogTable:
    """Table of a public area in a catalogue.

    Attributes
    ----------
    catalog : str
        Address or name, without credentials.
    name : str
        Namespace and table: ``statistics.persons``.
    public : PublicArea
    """

    catalog: str
    name: str
    public: PublicArea

    @property
    def folder(self) -> str:
        """Return the prefix of the table's metadata files; no two tables have the same prefix."""
        mark = hashlib.sha256(f"{self.catalog} {self.name}".encode()).hexdigest()[:8]
        return f"{FOLDER}/{self.name}-{mark}"

    def require(self) -> None:
        """Refuse a catalogue that does not respond, or a table that has another owner, before the run.

        Raises
        ------
        CatalogFailed, SpecificationError
        """
        with answering(KEY, self.catalog):
            self._table(open_catalog(self.catalog))

    def commit(self, release_id: str) -> None:
        """Make a release the newest state of the table, unless the table already contains it.

        Raises
        ------
        CatalogFailed, SpecificationError
        """
        with answering(KEY, self.catalog):
            catalog = open_catalog(self.catalog)
            table = self._table(catalog) or self._create(catalog, release_id)
            if release_id not in table.refs():
                with table.transaction() as transaction:
                    self._add(transaction, table, release_id, MAIN_BRANCH)

    def faults(self, manifest: dict[str, Any], ledger: Mapping[str, bool] | None = None) -> list[str]:
        """Read the table again from the catalogue and return its faults, one sentence each.

        Parameters
        ----------
        ledger : mapping of str to bool, optional
            Releases of the ledger, and whether they stand; by default all of the public area do.
        """
        with answering(KEY, self.catalog):
            table = self._table(open_catalog(self.catalog))
            if table is None:
                return ["the catalogue has no such table"]
            files = {
                each: list(map(self._address, names))
                for each, names in record_files_of_all(self.public).items()
                if ledger is None or ledger.get(each, True)
            }
            release_id = str(manifest["release_id"])
            files.setdefault(release_id, self._files(release_id))
            return audit.faults(table, manifest, files)

    def forget(self, release_id: str) -> None:
        """Remove a release, so that no snapshot and no file of the table refers to it any more.

        Raises
        ------
        CatalogFailed, SpecificationError
        ProtectionFailed
            If another writer restored a snapshot of the release.
        """
        with answering(KEY, self.catalog):
            catalog = open_catalog(self.catalog)
            table = self._table(catalog)
            if table is not None:
                left = [each for each in releases_of(table) if each != release_id]
                if not left:
                    catalog.drop_table(self.name)
                    table = None
                elif len(left) < len(releases_of(table)):
                    self._write_anew(table, left, release_id)
                    table = catalog.load_table(self.name)
                    if release_id in releases_of(table):
                        raise ProtectionFailed(
                            f"The table {self.name} of the catalogue: expected no snapshot of release "
                            f"{release_id}, found one that another writer restored. The withdrawal is not "
                            "complete. Stop the other writer, and run this again."
                        )
            self._remove_unnamed_files(table)

    def _table(self, catalog: Catalog) -> Table | None:
        """Return the table; None if it does not exist. Refuse a table that another area or program made."""
        try:
            table = catalog.load_table(self.name)
        except NoSuchTableError:
            return None
        if table.location().rstrip("/") != self._address(self.folder):
            raise SpecificationError(
                f"[publish] table: expected that the catalogue contains no table {self.name!r}, or the one "
                "of this public area; found one whose files are elsewhere. It belongs to another area or "
                "program, or the catalogue has two names. Nothing was changed in it. Choose another "
                "[publish] table, or write [publish] catalog as it was before."
            )
        return table

    def _create(self, catalog: Catalog, release_id: str) -> Table:
        catalog.create_namespace_if_not_exists(tuple(self.name.split(".")[:-1]))
        (file, *_), io = self._files(release_id), load_file_io(catalog.properties, self._address(self.folder))
        with io.new_input(file).open() as stream:
            schema = schema_of(pq.read_schema(stream))
        table = catalog.create_table(
            self.name,
            schema,
            location=self._address(self.folder),
            properties={
                TableProperties.DEFAULT_NAME_MAPPING: schema.name_mapping.model_dump_json(),
                TableProperties.COMMIT_NUM_RETRIES: "0",  # no race, because the public area is locked
            },
        )
        if table.location().rstrip("/") != self._address(self.folder):
            catalog.drop_table(self.name)
            raise SpecificationError(
                "[publish] catalog: expected a catalogue that stores the files of a table in the public "
                "area, found one that chooses their place itself, so that they could not be removed with a "
                "release. Allow the public area as a location in the catalogue, or choose another "
                "[publish] path."
            )
        return table

    def _add(
        self, transaction: Transaction, table: Table, release_id: str, branch: str, without: str = ""
    ) -> int:
        """Make a release the newest state of a branch; return the id of its snapshot."""
        files, state = self._files(release_id, without), transaction.table_metadata
        newest, before = state.snapshot_by_name(branch), {}
        if newest is not None:
            for manifest in newest.manifests(table.io):
                for entry in manifest.fetch_manifest_entry(table.io):
                    before[entry.data_file.file_path] = entry.data_file
        with table.io.new_input(files[-1]).open() as stream:
            schema = schema_of(pq.read_schema(stream))
        snapshot = replace_files(
            transaction,
            table.io,
            [file for path, file in before.items() if path not in files],
            [path for path in files if path not in before],
            schema,
            release_id,
            branch,
        )
        ManageSnapshots(transaction).create_tag(snapshot, release_id).commit()
        return snapshot

    def _write_anew(self, table: Table, left: Sequence[str], without: str) -> None:
        """Replace all snapshots by new ones of the remaining releases, in one commit."""
        earlier, tags = [each.snapshot_id for each in table.snapshots()], set(table.refs())
        with table.transaction() as transaction:
            for release_id in left:
                newest = self._add(transaction, table, release_id, _ANEW, without)
            refs = ManageSnapshots(transaction).set_current_snapshot(newest).remove_branch(_ANEW)
            for name in sorted(tags - {MAIN_BRANCH, _ANEW, *left}):
                refs.remove_tag(name)
            refs.commit()
            ExpireSnapshots(transaction).by_ids(earlier).commit()

    def _remove_unnamed_files(self, table: Table | None) -> None:
        """Delete the table files that no snapshot refers to, left by removed releases and killed runs."""
        named: set[str] = set()
        if table is not None:
            named.add(table.metadata_location)
            for snapshot in table.snapshots():
                named.add(snapshot.manifest_list)
                named |= {manifest.manifest_path for manifest in snapshot.manifests(table.io)}
        for name in self.public.storage.list_files(self.folder):
            if self._address(name) not in named:
                self.public.storage.delete(name)

    def _files(self, release_id: str, without: str = "") -> list[str]:
        """Return the addresses of the record files of a release and of the releases that it extends."""
        return [self._address(name) for name in record_files(self.public, release_id, without)]

    def _address(self, name: str) -> str:
        return f"{self.public.name.rstrip('/')}/{name}"
