"""Checks of the keys that a series of releases requires."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from microguard.schemas.specification.faults import NOTHING, Fault, fault
from microguard.schemas.specification.model import Specification


@dataclass(frozen=True)
class _Need:
    """Values of one key that a kind of series supports, and the reason.

    Attributes
    ----------
    section, key : str
    values : tuple of str
    why : str
    of_nominal : bool
        Whether the values are required only if all quasi-identifiers are nominal.
    why_not : mapping
        Separate reasons for some of the refused values.
    """

    section: str
    key: str
    values: tuple[str, ...]
    why: str
    of_nominal: bool = False
    why_not: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Kind:
    """Kind of a series: its name in messages, the reason why it needs units, and its further requirements."""

    where: str
    why_units: str
    needs: tuple[_Need, ...]


#: The effect was measured in tests/sdc/swapping/test_swapped_updates.py.
_SWAPPED = (
    "a record whose area differs between two updates was exchanged, and new units that are exchanged only "
    "with each other are so few that exchanges can be reversed; publish swapped records once, with "
    '[publish] series = "single", or this register by microaggregation'
)

_KINDS = {
    "register": _Kind(
        "in a register",
        "a register must recognise its units from update to update",
        (
            _Need(
                "method",
                "unit",
                ("record",),
                "a class is withdrawn once all its units have left, but members of a household, or "
                "records of a unit, leave separately, so that the class would represent fewer than k of "
                "them",
            ),
            _Need(
                "method",
                "name",
                ("microaggregation",),
                "a register publishes, suppresses and republishes classes as a whole, and other methods "
                "have no classes with fixed members",
                why_not={"swapping": _SWAPPED},
            ),
            _Need(
                "method", "algorithm", ("auto",), "nominal variables are protected by microaggregation", True
            ),
            _Need("method", "representative", ("auto", "mode", "medoid"), "its classes are clusters", True),
        ),
    ),
    "append": _Kind(
        "where updates are appended",
        "records published before are recognised by their unit",
        (
            _Need("method", "unit", ("record", "household"), "a unit has one record in one update"),
            _Need(
                "method",
                "name",
                ("microaggregation",),
                "other methods depend on the records of one update only, and the joint disclosure of "
                "several updates would not be audited",
            ),
        ),
    ),
}


def series_faults(spec: Specification) -> Iterator[Fault]:
    """Return the faults of keys that a series does not support, and of keys of a series if there is no
    series.
    """
    alone = spec.publish.series == "single" and spec.publish.successive == "refuse"
    if alone and spec.publish.keep is not None:
        allowed = 'not applicable unless [publish] series is not "single" or successive = "accept"'
        yield fault(("publish", "keep"), spec.publish.keep, allowed)
    if spec.publish.series in _KINDS:
        yield from _unmet(spec, _KINDS[spec.publish.series])
    yield from _of_registers(spec)


def _unmet(spec: Specification, kind: _Kind) -> Iterator[Fault]:
    if spec.unit is None:
        yield fault(("variables",), NOTHING, f"a variable of role unit: {kind.why_units}")
    nominal = spec.quasi_identifiers and spec.kinds() == "nominal"
    for need in kind.needs:
        value = getattr(getattr(spec, need.section), need.key)
        if value not in need.values and (nominal or not need.of_nominal):
            why = need.why_not.get(value, need.why)
            allowed = f"{', '.join(need.values)} {kind.where}: {why}"
            yield fault((need.section, need.key), value, allowed)


def _of_registers(spec: Specification) -> Iterator[Fault]:
    """Return the faults of keys of registers if there is no register, and of pairs of keys that a register
    does not support together.
    """
    if spec.publish.series == "register":
        if spec.groups:
            allowed = (
                "no groups in a register, because a record is withdrawn with its whole class in every "
                "group, and such classes would link whole regions"
            )
            yield fault(("groups",), spec.groups[0].name, allowed)
        if spec.series.pool is not None and spec.series.pool < spec.release.k:
            yield fault(("series", "pool"), spec.series.pool, f"at least k = {spec.release.k}")
        return
    for name in sorted(spec.series.model_fields_set):
        allowed = 'not applicable unless [publish] series = "register"'
        yield fault(("series", name), getattr(spec.series, name), allowed)
    if spec.publish.changes != "keep":
        allowed = 'keep, unless [publish] series = "register"'
        yield fault(("publish", "changes"), spec.publish.changes, allowed)
