"""Table formats of a data lake, with the functions that commit, audit and remove a release in each format.

A release is always a set of Parquet files in its own folder. A format adds a table next to these folders for
readers of the format. The table is committed and audited before the release counts as published, and a
withdrawn release is removed from the table. To add a format, add a module and a row of `FORMATS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from microguard.pipelines.publication.public_area import PublicArea

if TYPE_CHECKING:
    from microguard.pipelines.audit.table_records import TableAudit
    from microguard.pipelines.publication.formats.catalog_table import CatalogTable
    from microguard.pipelines.publication.formats.delta_store import StoredDeltaTable


@dataclass(frozen=True)
class TableFormat:
    """Table format and its operations.

    Attributes
    ----------
    name : str
    not_carried : schema -> names
        Return the columns for which the format has no type.
    commit : public area, release id -> None
        Make a release the newest state of the table in one commit; do nothing if it is committed already.
    audit : public area, manifest -> faults
        Compare the table with the files of a release, with code that shares nothing with `commit`; return one
        sentence for each fault.
    forget : public area, release id -> None
        Rewrite the table so that no version of it contains the release.
    """

    name: str
    not_carried: Callable[[pa.Schema], list[str]]
    commit: Callable[[Path, str], None]
    audit: Callable[[Path, dict[str, Any]], list[str]]
    forget: Callable[[Path, str], None]


def table_format(name: str) -> TableFormat:
    """Return the registry row of a format."""
    return FORMATS[name]()


def forget_everywhere(public: PublicArea, release_id: str, catalog: str = "", table: str = "") -> None:
    """Remove a release from its table in a catalogue, or from the tables in its public area.

    Parameters
    ----------
    catalog, table : str
        Catalogue and table of the release, as in its line of the ledger.
    """
    if catalog:
        catalog_table(catalog, table, public).forget(release_id)
    if public.folder is not None:
        for name, row in FORMATS.items():
            if (public.folder / name).is_dir() or any(public.folder.glob(f".{name}.*")):
                row().forget(public.folder, release_id)
    elif public.storage.list_files("delta"):
        stored_delta_table(public).forget(release_id)


def catalog_table(catalog: str, table: str, public: PublicArea) -> CatalogTable:
    """Return the table of a public area in a catalogue."""
    from microguard.pipelines.publication.formats.catalog_table import CatalogTable

    return CatalogTable(catalog, table, public)


def stored_delta_table(public: PublicArea) -> StoredDeltaTable:
    """Return the Delta table of a public area in an object store."""
    from microguard.pipelines.publication.formats.delta_store import StoredDeltaTable

    return StoredDeltaTable(public)


def _parquet() -> TableFormat:
    return TableFormat(
        name="parquet",
        not_carried=lambda schema: [],
        commit=lambda public, release_id: None,
        audit=lambda public, manifest: [],
        forget=lambda public, release_id: None,
    )


def _delta() -> TableFormat:
    from microguard.pipelines.audit import delta as audit
    from microguard.pipelines.publication.formats import delta

    return TableFormat("delta", delta.not_carried, delta.commit, _faults(audit.audit), delta.forget)


def _iceberg() -> TableFormat:
    from microguard.pipelines.audit import iceberg as audit
    from microguard.pipelines.publication.formats import iceberg

    return TableFormat("iceberg", iceberg.not_carried, iceberg.commit, _faults(audit.audit), iceberg.forget)


def _faults(audit: Callable[..., TableAudit]) -> Callable[[Path, dict[str, Any]], list[str]]:
    """Return a function that audits the state of one release; each other one was audited when committed."""
    return lambda public, manifest: audit(public, manifest, of_releases=False).faults


FORMATS: dict[str, Callable[[], TableFormat]] = {"parquet": _parquet, "delta": _delta, "iceberg": _iceberg}
"""Rows by the name in ``publish.format``; a library is imported only if its format is used."""
