"""Parameters of targeted record swapping."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from annotated_types import Ge, Le
from microguard.sdc.algorithms.parameters import Parameters, Variables

_Unfit = Iterator[tuple[str, object, str]]


@dataclass(frozen=True)
class SwappingParameters(Parameters):
    """Parameters of targeted record swapping (Office for National Statistics 2021; Eurostat 2019)."""

    geography: tuple[str, ...]
    """Quasi-identifiers whose values are exchanged: the levels of a nested geography, coarse to fine."""
    hierarchies: tuple[tuple[str, ...], ...] = ()
    """Further hierarchies, whose levels are not nested in those of `geography`. Each list starts with the
    level of `geography` within whose areas units are exchanged, followed by quasi-identifiers from coarse to
    fine. A list of one quasi-identifier alone is exchanged across the whole file."""
    risk: tuple[str, ...] = ()
    """Quasi-identifiers that define the risk of a record: it is at risk if fewer than k records of its area
    share its combination. Default: all that are not exchanged."""
    similar: tuple[tuple[str, ...], ...] = ()
    """Profiles in the order in which they are tried: two units may be exchanged if they agree in all
    variables of a profile. With households, `household_size` is an additional variable. Default: first the
    household size, then no condition."""
    risk_values: tuple[str, ...] = ()
    """Variables of role `risk` that contain the risk of each record and replace the rule of k: one for all
    levels, or one for each level of `geography`. The risk of a household is the largest of its records."""
    risk_threshold: Annotated[float, Ge(0)] | None = None
    """With `risk_values`: minimum value at which a record is at risk; a record with a missing value is at
    risk."""
    rate: Annotated[float, Ge(0), Le(1)] = 0.05
    """Minimum share of the units that are exchanged."""

    @property
    def levels(self) -> tuple[tuple[str, ...], ...]:
        """Return the levels in the order in which records are swapped.

        Each level is the list of its area variables from coarse to fine.

        The coarsest level of the geography comes first, then further levels of the whole file. The finest
        level of the geography comes last, because the swap rate is met at that level.
        """
        chains = [self.geography[: depth + 1] for depth in range(len(self.geography))]
        whole: list[tuple[str, ...]] = []
        within: list[tuple[str, ...]] = []
        for names in self.hierarchies:
            place = self.geography.index(names[0]) if names[0] in self.geography else -1
            start, further = (self.geography[: place + 1], names[1:]) if place >= 0 else ((), names)
            (within if start else whole).extend(
                (*start, *further[: depth + 1]) for depth in range(len(further))
            )
        first = chains[:1] if len(chains) > 1 else []
        return (*first, *whole, *chains[1:-1], *within, chains[-1])

    @property
    def further(self) -> tuple[str, ...]:
        """Return the levels that `hierarchies` add to the geography, in their order."""
        return tuple(name for each in self.hierarchies if each for name in each[each[0] in self.geography :])

    def for_tables(self, variables: Variables) -> SwappingParameters:
        """Set the default risk variables explicitly, for a table whose records are swapped first.

        By default they are all other variables, but a table has further columns.
        """
        return replace(self, risk=self.risk or self._others(variables))

    def _others(self, variables: Variables) -> tuple[str, ...]:
        """Return the quasi-identifiers that are not swapped."""
        return tuple(name for name in variables.kinds if name not in {*self.geography, *self.further})

    def unfit(self, variables: Variables) -> _Unfit:
        """Refuse areas and risk variables that are not quasi-identifiers, and unknown variable names in
        profiles.
        """
        for region in variables.with_role("region"):
            yield (
                "geography",
                self.geography,
                f"{region} first, as a quasi_identifier: if the published region does not change, an "
                "exchanged area of another region shows that the record was swapped",
            )
        yield from self._unfit_levels()
        nominal = [name for name, kind in variables.kinds.items() if kind == "nominal"]
        for key, names in (("geography", self.geography), ("hierarchies", self.further)):
            for name in names:
                if name not in nominal:
                    yield key, name, f"quasi-identifiers of kind nominal: {', '.join(nominal)}"
        others = self._others(variables)
        for name in self.risk:
            if name not in others:
                yield "risk", name, "quasi-identifiers outside geography"
        if not others:
            yield "risk", None, "at least one quasi-identifier outside geography"
        yield from self._unfit_values(variables.with_role("risk"))
        sizes = ["household_size"] if variables.with_role("household") else []
        known = {*others, *variables.published, *sizes} - {*self.geography, *self.further}
        for name in (name for profile in self.similar for name in profile):
            if name not in known:
                yield "similar", name, "published variables outside geography"

    def _unfit_levels(self) -> _Unfit:
        """Refuse repeated levels, and hierarchies that do not start at a level of the geography."""
        geography, further = self.geography, self.further
        if not geography or len(set(geography)) < len(geography):
            yield "geography", geography, "one or more quasi-identifiers, coarse to fine, each once"
        for each in self.hierarchies:
            starts = each[:1] != () and each[0] in geography
            if len(each) < 1 + starts or (len(each) > 1 and not starts):
                allowed = (
                    "a level of geography and then further quasi-identifiers, or one quasi-identifier alone"
                )
                yield "hierarchies", each, allowed
        if len(set(further)) < len(further) or set(further) & set(geography):
            yield "hierarchies", self.hierarchies, "each further level only once, and no level of geography"

    def _unfit_values(self, supplied: Sequence[str]) -> _Unfit:
        """Refuse supplied risks that are published, unused, or neither one for all levels nor one for each
        level.
        """
        values = self.risk_values
        for name in values:
            if name not in supplied:
                yield "risk_values", name, "variables of role risk"
        if set(supplied) - set(values):
            yield "risk_values", values, f"every variable of role risk: {', '.join(supplied)}"
        if len(values) > 1 and (self.hierarchies or len(values) != len(self.geography)):
            allowed = "one variable, or one for each level of geography if there are no hierarchies"
            yield "risk_values", values, allowed
        if bool(values) != (self.risk_threshold is not None):
            allowed = "the value from which a record is at risk, with risk_values"
            yield "risk_threshold", self.risk_threshold, allowed
