"""Registry of guarantees, by name and from a manifest; a guarantee that no code counts is refused.

A row names the module of a guarantee; the module is imported only for a release with this guarantee.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from microguard.pipelines.guarantees.guarantee import Guarantee
from microguard.pipelines.guarantees.k_anonymity import ANY_VALUE, CATEGORY, UNITS, KAnonymity
from microguard.pipelines.guarantees.l_diversity import LDiversity
from microguard.pipelines.guarantees.record_files import RecordFiles
from microguard.schemas.errors import ProtectionFailed
from microguard.schemas.requirements.requirement import Requirement

if TYPE_CHECKING:
    from microguard.pipelines.guarantees.tables import TableGuarantee

#: Content type of a release that has tables and no records.
TABLE = "table"

_HERE = "microguard.pipelines.guarantees"
#: All guarantees, by name, as "module:class".
GUARANTEES = {
    "k-anonymity": f"{_HERE}.k_anonymity:KAnonymity",
    "l-diversity": f"{_HERE}.l_diversity:LDiversity",
    "measured only": f"{_HERE}.measured_only:MeasuredOnly",
    "additive table": f"{_HERE}.additive_table:AdditiveTable",
    "rounded table": f"{_HERE}.rounded_table:RoundedTable",
    "no small counts": f"{_HERE}.small_counts:SmallCounts",
    "bounded noise": f"{_HERE}.bounded_noise:BoundedNoise",
    "noise of amounts": f"{_HERE}.noisy_amounts:NoisyAmounts",
    "suppressed table": f"{_HERE}.suppressed_table:SuppressedTable",
}
#: Guarantee of each table method, by the method's name in a manifest.
OF_TABLE_METHOD = {
    "controlled tabular adjustment": "additive table",
    "controlled rounding": "rounded table",
    "small count rounding": "no small counts",
    "cell keys": "bounded noise",
    "cell keys of amounts": "noise of amounts",
    "cell suppression": "suppressed table",
}


class UnknownGuarantee(Exception):
    """Raised if a manifest states a promise that no code of this version can count."""


def promised(guarantees: Sequence[Guarantee[Any]]) -> list[Requirement]:
    """Return the metrics that a run must count before it may publish under these guarantees.

    Raises
    ------
    ProtectionFailed
        If there is no guarantee, a guarantee requires nothing, or it is not defined in this package: a method
        chooses a guarantee, and cannot bring its own count.
    """
    requirements = [(*each.requirements(), *each.private_requirements()) for each in guarantees]
    known = all(is_registered(each) for each in guarantees)
    if not guarantees or not known or not all(requirements):
        raise ProtectionFailed(
            "The method names no guarantee that is verified by a count, so nothing may be published under "
            "its promise. Register the method with one of the guarantees in pipelines/guarantees."
        )
    return [requirement for each in requirements for requirement in each]


def is_registered(guarantee: Guarantee[Any]) -> bool:
    """Return whether a guarantee is defined in this package; a plug-in must not replace its count."""
    path = GUARANTEES.get(guarantee.name)
    return path is not None and type(guarantee) is resolve_name(path)


def require_stated(manifest: Mapping[str, Any], guarantees: Sequence[Guarantee[Any]]) -> None:
    """Refuse a manifest whose promises differ from the counted ones.

    The promises are read from the manifest as ``microguard verify`` reads them.

    Raises
    ------
    ProtectionFailed
    """
    try:
        stated = guarantees_in(manifest)
    except UnknownGuarantee as error:
        raise ProtectionFailed(f"The release could not be verified after publication: {error}.") from error
    if [(each.name, each.requirements()) for each in stated] != [
        (each.name, each.requirements()) for each in guarantees
    ]:
        raise ProtectionFailed(
            "The promises in the manifest differ from those that were counted on the files. This is a "
            "fault of the method's registration. Nothing was published."
        )


def guarantees_in(manifest: Mapping[str, Any]) -> tuple[Guarantee[Any], ...]:
    """Build the guarantees from the statements of a manifest.

    Raises
    ------
    UnknownGuarantee
    """
    if manifest.get("content") == TABLE:
        return (table_guarantee(manifest),)
    return record_guarantees(manifest)


def record_guarantees(manifest: Mapping[str, Any]) -> tuple[Guarantee[RecordFiles], ...]:
    """Build the guarantees of records from the statements of a manifest.

    Raises
    ------
    UnknownGuarantee
    """
    stated = manifest.get("guarantee")
    if isinstance(stated, Mapping) and stated.get("name") == "measured only":
        return (resolve_name(GUARANTEES["measured only"]).from_manifest(manifest),)
    if not isinstance(stated, Mapping) or "k" not in stated:
        raise UnknownGuarantee("the manifest states no guarantee of records that this version counts")
    anonymous, diverse = KAnonymity.from_manifest(manifest), LDiversity.from_manifest(manifest)
    fault = next(_empty_statements(anonymous, manifest), None)
    if fault is not None:
        raise UnknownGuarantee(f"the manifest states a k-anonymity without effect: {fault}")
    return (anonymous, *(() if diverse is None else (diverse,)))


def _empty_statements(stated: KAnonymity, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield reasons why the count of a stated k-anonymity would be met by any records, or only by a part of
    the variables.

    Manifests of early versions do not state which columns are protected.
    """
    if stated.k < 2:
        yield f"k is {stated.k}, expected at least 2"
    if stated.unit not in UNITS or stated.missing not in (CATEGORY, ANY_VALUE):
        yield "k counts a unit, or treats missing values in a way, that this version does not know"
    if not stated.groups or not all(group.variables for group in stated.groups):
        yield "expected at least one group of variables, and variables in each group"
    columns = manifest["columns"]
    grouped = {name for group in stated.groups for name in group.variables}
    apart = [each["name"] for each in columns if each.get("protected") and each["name"] not in grouped]
    if apart:
        yield f"expected every protected column in a group, found {', '.join(apart)} in none"
    regions = [each["name"] for each in columns if each.get("role") == "region"]
    if any(name not in group.region for name in regions for group in stated.groups):
        yield f"expected the region {', '.join(regions)} in every group"


def table_guarantee(manifest: Mapping[str, Any]) -> TableGuarantee:
    """Build the guarantee of tables from the statements of a manifest.

    Raises
    ------
    UnknownGuarantee
    """
    named = manifest.get("method", {}).get("name")
    if named not in OF_TABLE_METHOD:
        raise UnknownGuarantee("the manifest states no guarantee of tables that this version counts")
    return resolve_name(GUARANTEES[OF_TABLE_METHOD[named]]).from_manifest(manifest)
