"""What a release of records promises: one exhaustive list of methods and their guarantees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from microguard.pipelines.guarantees.guarantee import Guarantee
from microguard.pipelines.guarantees.k_anonymity import Group, KAnonymity
from microguard.pipelines.guarantees.l_diversity import LDiversity
from microguard.pipelines.guarantees.record_files import RecordFiles
from microguard.schemas.specification.model import Specification

#: What every reader must know of microaggregated records, and of frequencies changed by a method.
METHOD_LIMITS = (
    "Microaggregation shrinks variances, and totals of these records (weighted ones, where means are "
    "weighted) may be those of the original ones: a total that must be protected in a table must not come "
    "from the same microdata.",
    "Medians and medoids publish true values.",
    "A zero in a protected table is not evidence of absence.",
)


def guarantees_of(specification: Specification) -> tuple[Guarantee[RecordFiles], ...]:
    """Return the guarantees of a specification's method; a method without one does not type-check."""
    match specification.method.name:
        case "microaggregation" | "safe":
            groups = _groups(specification)
            anonymous = KAnonymity(
                specification.release.k, specification.method.unit, groups, not specification.groups
            )
            least = specification.method.min_diversity
            if least == 1:
                return (anonymous,)
            return (anonymous, LDiversity(least, tuple(specification.sensitive), groups))
        case method:
            assert_never(method)


def limits_of(guarantees: Sequence[Guarantee[RecordFiles]]) -> tuple[str, ...]:
    """What a reader must know: of the first guarantee, of the method, and of further guarantees."""
    first, *further = guarantees
    return (*first.limits, *METHOD_LIMITS, *(limit for each in further for limit in each.limits))


def _groups(specification: Specification) -> tuple[Group, ...]:
    region = () if specification.region is None else (specification.region,)
    return tuple(Group(each.name, tuple(each.variables), region) for each in specification.clusterings)
