"""Identity of a release: everything that determines its content. The release id is a keyed hash of it.

Limits of the gate, counts of the population, an agency's own suite, paths and the version of this package are
not part of the identity: the same input with another limit or a newer version is the same release. If a
change of this package alters published values, `METHOD` changes. Versions of other packages that can alter
values are part of the identity (`SOFTWARE`), because it is unknown which versions of a solver do. Keys with
their default value are left out, so that a key added later does not change earlier ids. A number of decimals
derived from the data counts like a specified one, unless it is the earlier default.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from microguard.pipelines.engine.files import checksum
from microguard.pipelines.engine.versions import deciding_versions
from microguard.pipelines.intake.validate import ValidatedInput
from microguard.schemas.method_registry import third_party_version
from microguard.schemas.specification.model import Specification

#: Version number that changes if, and only if, the same input and specification give another release than
#: before.
METHOD = 30
#: Sections of which only some keys determine the published content, with these keys.
DECIDING = {
    "publish": ("disclose", "format", "partition_by", "csv", "series", "changes"),
    "series": ("pool",),
}
#: Key with the versions of the packages that determine values; earlier identities do not have it, see
#: `same_job`.
SOFTWARE = "software"
#: Key with the kind of the series, for a release of a series.
SERIES = "series"
#: Sections that only measure or permit; they are not part of the identity.
PERMISSIONS = ("quality", "population")


def identity(screened: ValidatedInput, specification: Specification, content: str) -> dict[str, Any]:
    """Return everything that determines the content of a release.

    Parameters
    ----------
    specification : Specification
        With the defaults that depend on the input.
    content : str
        ``records`` or ``table``: the kind of content that is published.
    """
    return {
        "content": content,
        "fingerprint": screened.fingerprint,
        "specification": _made_from(specification),
        "seed": specification.release.seed,
        "method": METHOD,
        SOFTWARE: deciding_versions(),
        **_input_files(specification),
        **_third_party(specification),
    }


def _input_files(specification: Specification) -> dict[str, str]:
    """Return the checksums of additional input files; missing files are reported when they are read."""
    table = specification.table
    files = (
        {}
        if table is None
        else {
            "known_before": table.a_priori,
            "noise_table": table.noise_table,
            "small_noise_table": table.small_noise_table,
        }
    )
    paths = {key: Path(specification.resolve(name)) for key, name in files.items() if name is not None}
    return {key: checksum(path) for key, path in paths.items() if path.is_file()}


def _third_party(specification: Specification) -> dict[str, dict[str, str]]:
    """Return package and version of a third-party method, which are part of the identity; empty for our own
    methods.
    """
    if specification.table is None:
        package = third_party_version("records", specification.method.name)
    else:
        package = third_party_version("table", specification.table.method)
    return {"third_party": package} if package else {}


def _made_from(specification: Specification) -> dict[str, Any]:
    """Return the specification without paths and without the sections that only measure or permit."""
    content = specification.model_dump(mode="json", exclude_defaults=True)
    for key in ("path", "version", "timestamp", "expectations", "metadata"):
        content["input"].pop(key, None)
    for section in PERMISSIONS:
        content.pop(section, None)
    for section, keys in DECIDING.items():
        deciding = {name: value for name, value in content.pop(section, {}).items() if name in keys}
        content |= {section: deciding} if deciding else {}
    return content
