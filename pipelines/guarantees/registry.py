"""The guarantees there are, and those that a manifest states. One that nobody counts is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from microguard.pipelines.guarantees import (
    additive_table,
    bounded_noise,
    measured_only,
    rounded_table,
    suppressed_table,
)
from microguard.pipelines.guarantees.additive_table import AdditiveTable
from microguard.pipelines.guarantees.bounded_noise import BoundedNoise
from microguard.pipelines.guarantees.guarantee import Guarantee
from microguard.pipelines.guarantees.k_anonymity import KAnonymity
from microguard.pipelines.guarantees.l_diversity import LDiversity
from microguard.pipelines.guarantees.measured_only import MeasuredOnly
from microguard.pipelines.guarantees.record_files import RecordFiles
from microguard.pipelines.guarantees.rounded_table import RoundedTable
from microguard.pipelines.guarantees.suppressed_table import SuppressedTable
from microguard.pipelines.guarantees.tables import TableGuarantee
from microguard.schemas.errors import ProtectionFailed
from microguard.schemas.requirements.requirement import Requirement

#: Content of a release that holds tables and no records.
TABLE = "table"

#: Guarantees of tables, by the name of the method that a manifest states.
TABLE_GUARANTEES: dict[str, Callable[[Mapping[str, Any]], TableGuarantee]] = {
    additive_table.METHOD: AdditiveTable.from_manifest,
    rounded_table.METHOD: RoundedTable.from_manifest,
    bounded_noise.METHOD: BoundedNoise.from_manifest,
    suppressed_table.METHOD: SuppressedTable.from_manifest,
}
#: All guarantees, by name.
GUARANTEES: dict[str, type[Guarantee[Any]]] = {
    each.name: each
    for each in (
        KAnonymity,
        LDiversity,
        MeasuredOnly,
        AdditiveTable,
        RoundedTable,
        BoundedNoise,
        SuppressedTable,
    )
}


class UnknownGuarantee(Exception):
    """A manifest states a promise that no code of this version counts."""


def promised(guarantees: Sequence[Guarantee[Any]]) -> list[Requirement]:
    """Return what a run must have counted before it publishes under these guarantees.

    Raises
    ------
    ProtectionFailed
        If there is no guarantee, one that requires nothing, or one that is not of this room: a method chooses
        a promise, and does not bring a count of its own.
    """
    requirements = [(*each.requirements(), *each.private_requirements()) for each in guarantees]
    known = all(type(each) is GUARANTEES.get(each.name) for each in guarantees)
    if not guarantees or not known or not all(requirements):
        raise ProtectionFailed(
            "The method names no guarantee whose count decides: nothing may be published under a promise "
            "that nobody counts. Register the method with one of the guarantees of pipelines/guarantees."
        )
    return [requirement for each in requirements for requirement in each]


def require_stated(manifest: Mapping[str, Any], guarantees: Sequence[Guarantee[Any]]) -> None:
    """Refuse a manifest that states other promises than those that were counted.

    The promises are read from the manifest as ``microguard verify`` reads them.

    Raises
    ------
    ProtectionFailed
    """
    try:
        stated = guarantees_in(manifest)
    except UnknownGuarantee as error:
        raise ProtectionFailed(f"The release cannot be verified once published: {error}.") from error
    if [(each.name, each.requirements()) for each in stated] != [
        (each.name, each.requirements()) for each in guarantees
    ]:
        raise ProtectionFailed(
            "The manifest states other promises than those that were counted on the files. This is a fault "
            "of the method's registration. Nothing was published."
        )


def guarantees_in(manifest: Mapping[str, Any]) -> tuple[Guarantee[Any], ...]:
    """Build the guarantees that a manifest states.

    Raises
    ------
    UnknownGuarantee
    """
    if manifest.get("content") == TABLE:
        return (table_guarantee(manifest),)
    return record_guarantees(manifest)


def record_guarantees(manifest: Mapping[str, Any]) -> tuple[Guarantee[RecordFiles], ...]:
    """Build the guarantees that the manifest of records states.

    Raises
    ------
    UnknownGuarantee
    """
    stated = manifest.get("guarantee")
    if isinstance(stated, Mapping) and stated.get("name") == measured_only.NAME:
        return (MeasuredOnly.from_manifest(manifest),)
    if not isinstance(stated, Mapping) or "k" not in stated:
        raise UnknownGuarantee("the manifest states no guarantee of records that this version counts")
    diverse = LDiversity.from_manifest(manifest)
    return (KAnonymity.from_manifest(manifest), *(() if diverse is None else (diverse,)))


def table_guarantee(manifest: Mapping[str, Any]) -> TableGuarantee:
    """Build the guarantee that the manifest of a table states.

    Raises
    ------
    UnknownGuarantee
    """
    named = manifest.get("method", {}).get("name")
    if named not in TABLE_GUARANTEES:
        raise UnknownGuarantee("the manifest states no guarantee of tables that this version counts")
    return TABLE_GUARANTEES[named](manifest)
