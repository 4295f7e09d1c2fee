"""Access to a catalogue of Iceberg tables (REST, SQL or Hive), by its address or by a name configured in
pyiceberg.

Credentials are never in a specification: pyiceberg reads them from its environment
(``PYICEBERG_CATALOG__<NAME>__TOKEN``) or its file ``.pyiceberg.yaml``. An address uses the settings of the
catalogue `NAME`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from microguard.pipelines.engine.extras import missing_extra
from microguard.schemas.errors import MicroguardError

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

#: Name given to a catalogue opened by its address: pyiceberg's default, so that readers find it without a
#: name.
NAME = "default"
#: Settings of table files that our object stores also read from the environment.
_STORE = {"s3.endpoint": "AWS_ENDPOINT_URL", "s3.region": "AWS_REGION"}


class CatalogFailed(MicroguardError):
    """Raised if a catalogue did not answer, or refused a request."""

    exit_code = 1


def open_catalog(catalog: str) -> Catalog:
    """Open a catalogue and return it.

    Parameters
    ----------
    catalog : str
        Address (``https://...``, ``sqlite:///...``, ``thrift://...``), or a name that pyiceberg knows.
    """
    from pyiceberg.catalog import load_catalog
    from pyiceberg.utils.config import Config

    name, address = (NAME, {"uri": catalog}) if "://" in catalog else (catalog, {})
    configured = Config().get_catalog_config(name) or {}
    files = store_settings()
    return load_catalog(name, **{key: files[key] for key in files.keys() - configured.keys()}, **address)


def store_settings() -> dict[str, str]:
    """Return the settings by which pyiceberg reads files in the object store configured in the
    environment.
    """
    return {key: os.environ[name] for key, name in _STORE.items() if name in os.environ}


@contextmanager
def answering(key: str, catalog: str) -> Iterator[None]:
    """Translate every error of the library, because its texts may contain credentials.

    Parameters
    ----------
    key : str
        Key of the specification that names the catalogue, for messages.

    Raises
    ------
    CatalogFailed
    """
    try:
        yield
    except MicroguardError:
        raise
    except Exception as error:
        missing = missing_extra(error) if isinstance(error, ImportError) else None
        raise missing or CatalogFailed(
            f"{key} = {catalog!r}: expected a catalogue of Iceberg tables that responds, found an error "
            f"({type(error).__name__}). Check that it can be reached, that the settings of pyiceberg "
            "contain its credentials and those of its files, and that its driver is installed (pip install "
            '"pyiceberg[sql-sqlite]", "[sql-postgres]" or "[hive]"), then run this command again.'
        ) from None
