"""Catalogues (SQL and REST) and storage of releases: a folder, and a bucket of an S3 server."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import pyiceberg.catalog
import pytest
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.formats.catalog_table import CatalogTable
from microguard.pipelines.publication.ledger import Entry
from pyiceberg.catalog import Catalog
from pyiceberg.utils.config import Config

from tests.pipelines.publication.catalogs.rest_server import TOKEN, rest_catalog
from tests.pipelines.publication.storage.servers import S3
from tests.pipelines.releases import ID, entry

TABLE = "statistics.persons"

#: Run a test with each catalogue and each storage; with --long also with each pair of both.
every_pair = pytest.mark.parametrize(
    "lake",
    [
        "sql-folder",
        "rest-bucket",
        *(pytest.param(pair, marks=pytest.mark.long) for pair in ("sql-bucket", "rest-folder")),
    ],
    indirect=True,
)


def store() -> dict[str, str]:
    """Return the settings of the S3 server for pyiceberg, if there is a server."""
    names = {"s3.endpoint": "AWS_ENDPOINT_URL", "s3.region": "AWS_REGION"}
    return {key: os.environ[name] for key, name in names.items() if name in os.environ}


@dataclass
class Lake:
    """Return a public area whose releases are snapshots of a table in a catalogue."""

    areas: Areas
    catalog: str
    requests: list[str]

    def entry(self, release_id: str = ID) -> Entry:
        return replace(entry(release_id), catalog=self.catalog, table=TABLE)

    @property
    def table(self) -> CatalogTable:
        return CatalogTable(self.catalog, TABLE, self.areas.public)

    def reader(self) -> Catalog:
        """Return the catalogue as a reader opens it."""
        return pyiceberg.catalog.load_catalog(uri=self.catalog, **store())

    def files(self) -> dict[str, bytes]:
        """Return every file of the public area except the lock of a bucket."""
        storage = self.areas.public.storage
        return {name: storage.get(name).content for name in storage.list_files() if name != ".lease"}


@pytest.fixture(scope="session")
def s3():
    with S3.started() as address:
        yield address


@pytest.fixture(params=["sql-folder", "rest-bucket"])
def lake(request, s3, tmp_path, monkeypatch):
    kind, _, place = request.param.partition("-")
    requests: list[str] = []
    monkeypatch.setenv("PYICEBERG_CATALOG__DEFAULT__TOKEN", TOKEN)
    monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())
    for name in [each for each in os.environ if each.startswith("AWS_")]:
        monkeypatch.delenv(name)
    public = str(tmp_path / "lake #1" / "persons")  # "#" and "?" would end the path of an address
    if place == "bucket":
        for name, value in S3.settings(s3).items():
            monkeypatch.setenv(name, value)
        public = f"{S3.make(s3, f'lake-{abs(hash(request.node.name))}')}/persons"
    areas = Areas.from_places(public, tmp_path / "evidence")
    if kind == "sql":
        yield Lake(areas, f"sqlite:///{tmp_path}/catalog.db", requests)
    else:
        with rest_catalog(tmp_path, requests, **store()) as address:
            yield Lake(areas, address, requests)
