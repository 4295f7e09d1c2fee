"""What a release is made from: its id is a keyed hash of this.

Only what decides the answer is in it. Limits of the gate, counts of the population, an agency's own suite,
paths and the version of this package are not: the same input under a newer one, or beside another limit, is
the same release. Its own changes of values move `METHOD`. Nobody here can say which version of a solver
changes values, so the versions of all packages that can are in it, under `SOFTWARE`. Keys that have their
default are left out, so that a key added later does not change the ids of before. A number of decimals that
follows from the data is in it like one that was asked for, unless it is the default of before.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from microguard.pipelines.engine.files import checksum
from microguard.pipelines.engine.versions import deciding_versions
from microguard.pipelines.intake.validate import ValidatedInput
from microguard.schemas.method_registry import third_party_version
from microguard.schemas.specification.model import Specification

#: Moves when, and only when, the same input and specification give another answer than before.
METHOD = 20
#: Keys that decide what is published, of sections where not all do.
DECIDING = {
    "publish": ("disclose", "format", "partition_by", "csv", "series", "changes"),
    "series": ("pool",),
}
#: Versions of the packages that decide values; not in the identities of before, see `same_job`.
SOFTWARE = "software"
#: Of a release of a series: which kind of series.
SERIES = "series"
#: Sections that only measure and permit.
PERMISSIONS = ("quality", "population")


def identity(screened: ValidatedInput, specification: Specification, content: str) -> dict[str, Any]:
    """What decides the answer of a run.

    Parameters
    ----------
    specification : Specification
        With the defaults that depend on the input.
    content : str
        ``records`` or ``table``: what is made from the input.
    """
    return {
        "content": content,
        "fingerprint": screened.fingerprint,
        "specification": _made_from(specification),
        "seed": specification.release.seed,
        "method": METHOD,
        SOFTWARE: deciding_versions(),
        **_known_before(specification),
        **_third_party(specification),
    }


def _known_before(specification: Specification) -> dict[str, str]:
    """Content of the file of single cells, which decides as the input does; its reader tells its lack."""
    table = specification.table
    if table is None or table.a_priori is None:
        return {}
    path = Path(specification.resolve(table.a_priori))
    return {"known_before": checksum(path)} if path.is_file() else {}


def _third_party(specification: Specification) -> dict[str, dict[str, str]]:
    """Return the package of a method of a third party, whose version decides the answer; else nothing."""
    if specification.table is None:
        package = third_party_version("records", specification.method.name)
    else:
        package = third_party_version("table", specification.table.method)
    return {"third_party": package} if package else {}


def _made_from(specification: Specification) -> dict[str, Any]:
    """The specification without where the files lie and what is only permitted."""
    content = specification.model_dump(mode="json", exclude_defaults=True)
    for key in ("path", "expectations", "metadata"):
        content["input"].pop(key, None)
    for section in PERMISSIONS:
        content.pop(section, None)
    for section, keys in DECIDING.items():
        deciding = {name: value for name, value in content.pop(section, {}).items() if name in keys}
        content |= {section: deciding} if deciding else {}
    return content
