"""Refuse a second release of the same job if it was computed with other package versions.

The versions of the packages that determine values belong to the identity of a release
(`pipelines.engine.versions`). A release of the same input and specification computed with other versions may
have other values, and comparing both releases discloses more than either alone. `publish.successive` accepts
releases of other input and does not apply here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from microguard.pipelines.engine.versions import in_words
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.identity import SOFTWARE
from microguard.pipelines.publication.ledger import Entry, Ledger
from microguard.schemas.errors import GateRefused
from microguard.schemas.specification.model import Specification


def ids_of_job(areas: Areas, made_from: Mapping[str, Any]) -> tuple[str, str]:
    """Return the release id of a job, and its id in earlier versions, which ignored package versions."""
    return areas.release_id(made_from), areas.release_id(_without_software(made_from))


def refuse_same_job(
    areas: Areas, made_from: Mapping[str, Any], specification: Specification, release_id: str
) -> None:
    """Refuse a second release of the same input and specification computed with other software versions.

    Parameters
    ----------
    made_from : mapping
        Identity of the release to be made.
    specification : Specification
        The specification as read from its file.
    release_id : str
        Id of the release to be made: a damaged release of this id is made again.

    Raises
    ------
    GateRefused
        If a release of the same job, computed with other versions or with the earlier default of decimals, is
        published or pending approval.
    """
    ledger, name = Ledger(areas), specification.release.name
    ours = json.loads(json.dumps(made_from))
    rest = _without_software(ours)
    for entry in (*ledger.published(name), *ledger.pending(name)):
        if entry.release_id == release_id:
            continue
        if _without_software(entry.identity) == rest:
            raise GateRefused(_other_versions(entry, ours, areas))
        by_default = specification.table is not None and specification.table.decimals is None
        accepted = specification.publish.successive == "accept"
        if by_default and not accepted and _without_software(entry.identity) == _without_decimals(rest):
            raise GateRefused(_other_decimals(entry, rest))


def _without_software(identity: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in identity.items() if key != SOFTWARE}


def _without_decimals(identity: Mapping[str, Any]) -> dict[str, Any]:
    specification = dict(identity["specification"])
    specification["table"] = {k: v for k, v in specification["table"].items() if k != "decimals"}
    return {**identity, "specification": specification}


def _other_versions(entry: Entry, ours: Mapping[str, Any], areas: Areas) -> str:
    theirs, current = entry.identity.get(SOFTWARE), ours[SOFTWARE]
    if theirs:
        apart = [package for package in sorted(current) if theirs.get(package) != current[package]]
        then = in_words({package: theirs.get(package, "(none)") for package in apart})
        now = in_words({package: current[package] for package in apart})
        found = f"only the versions of the solver and its packages differ, {then} then and {now} now"
    else:
        found = "it contains no versions of the solver and its packages, and is incomplete"
    state = "is published"
    choices = (
        "If readers should keep this release, there is nothing to do. To replace it, withdraw it first "
        "(microguard withdraw)"
    )
    if entry.event == "waiting":
        folder = areas.record_place(entry.release_id)
        state = "is pending approval"
        choices = f"Decide on it (microguard approve {folder} --by NAME, or microguard reject)"
    return (
        f"Release {entry.release_id} of {entry.name!r} {state} and was made from the same input, k, seed "
        f"and specification: {found}. Other versions may protect the same records with other values, and "
        f"two such releases can be differenced, so publish.successive does not allow it. {choices}, or "
        "install the earlier versions. Nothing was published."
    )


def _other_decimals(entry: Entry, ours: Mapping[str, Any]) -> str:
    decimals = ours["specification"]["table"]["decimals"]
    return (
        f"Release {entry.release_id} of {entry.name!r} was made from the same input and specification when "
        f"table.decimals was 2 by default. Now the default is the precision of the data, {decimals}, and "
        "the values would differ: two releases of the same cells can be differenced. If readers should keep "
        "this release, there is nothing to do. Its last digits reveal which cells were moved. Its cells "
        "keep their values in every later table, which needs table.decimals = 2 for them. Nothing was "
        "published."
    )
