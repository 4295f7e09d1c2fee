"""Release specification as a frozen model, with properties derived from its keys."""

from __future__ import annotations

import os
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from microguard.schemas.method_registry import BUILT_IN, MethodRow, method_row
from microguard.schemas.methods import BY_CONTROL_TABLES, STRATEGIES, Kinds, Strategy, max_records
from microguard.schemas.paths import expanded
from microguard.schemas.roles import CATEGORIES, PUBLISHED, PUBLISHED_AS_IT_IS
from microguard.schemas.specification.rules import Rule, parse_rule
from microguard.schemas.specification.section import Section, Text
from microguard.schemas.specification.sections import (
    Blocking,
    Group,
    Input,
    Method,
    Missing,
    Population,
    Publish,
    Quality,
    Release,
    Series,
    Variable,
)
from microguard.schemas.specification.table import Table
from microguard.sdc.algorithms.parameters import Variables
from pydantic import Field, PrivateAttr

if TYPE_CHECKING:
    from microguard.schemas.expressions import Expression

WHOLE = "all"
"""Name of the single clustering of a specification without groups."""
SQLITE = "sqlite:///"
"""Prefix of the address of an SQLite file, before its path."""
TABLE = "table://"
"""Prefix of the address of an input that is named as a table."""
DEFAULT_DIMENSION = 2
"""Default maximum dimension of the control tables."""


class Specification(Section):
    """Release specification as it was read."""

    release: Release
    """What is released."""
    input: Input
    """Where the microdata are."""
    variables: dict[Text, Variable] = Field(min_length=1)
    """The columns of the file, by name."""
    method: Method = Method()
    """How the quasi-identifiers are protected."""
    blocking: Blocking = Blocking()
    """How records are cut into blocks."""
    missing: Missing = Missing()
    """What missing values mean."""
    population: Population | None = None
    """The number of units in the population for each combination."""
    rules: dict[Text, Text] = Field(default={})
    """Edit rules by name, such as child = "relationship = 'child' -> marital_status = 'single'"."""
    derived: dict[Text, Text] = Field(default={})
    """Columns that are computed from others after protection, such as log_income = "log(income)". Expressions
    contain numbers, published variables that are not derived, + - * /, brackets and the functions log, log10,
    exp, sqrt and abs. A value that cannot be computed is missing. A run compares the written files with the
    expressions and publishes nothing if a record differs; `microguard verify` does not repeat this
    comparison."""
    quality: Quality = Quality()
    """The gate."""
    publish: Publish
    """Where release and evidence go."""
    series: Series = Series()
    """Limits of a series of releases."""
    groups: Annotated[tuple[Group, ...], Field(strict=False)] = ()
    """Groups of quasi-identifiers that are protected independently; without groups, all are protected
    together."""
    table: Table | None = None
    """The table that `microguard adjust` protects."""

    _folder: Path = PrivateAttr(default_factory=Path.cwd)

    def __copy__(self) -> Self:
        """Copy the fields; derived properties are computed again, because `model_copy` may change fields."""
        return super().__copy__()._without_derived()

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Copy the fields and their contents, without derived properties."""
        return super().__deepcopy__(memo)._without_derived()

    def __getstate__(self) -> dict[Any, Any]:
        """Return the state for pickle, without derived properties."""
        return super(Specification, self.__copy__()).__getstate__()

    def _without_derived(self) -> Self:
        for name in self.__dict__.keys() - type(self).__pydantic_fields__.keys():
            del self.__dict__[name]
        return self

    @property
    def folder(self) -> Path:
        """Return the folder of the specification, to which its paths are relative, as absolute path."""
        return self._folder

    def resolve(self, path: str) -> str:
        """Return the absolute form of a path; a path with a scheme (`s3a://`) remains unchanged.

        Raises
        ------
        SpecificationError
            If the path begins with a ``~`` that does not stand for a home folder.
        """
        return path if "://" in path else os.path.normpath(self._folder / expanded(path))

    @property
    def input_path(self) -> str:
        """Return the absolute input path; for an input named as a table, an address with a scheme."""
        if self.input.table is not None:
            return f"{TABLE}{self.input.table}"
        return self.resolve(self.input.path)

    @property
    def public_area(self) -> str:
        """Return the absolute path of the public area."""
        return self.resolve(self.publish.path)

    @property
    def evidence_area(self) -> str:
        """Return the absolute path of the evidence area."""
        return self.resolve(self.publish.evidence)

    @property
    def shared_ledger(self) -> str | None:
        """Return the absolute path of the ledger that several evidence areas share; None if there is none."""
        return None if self.publish.ledger is None else self.resolve(self.publish.ledger)

    @property
    def catalog(self) -> str | None:
        """Return the address or name of the release's catalogue (SQLite files as absolute paths)."""
        return self._catalog(self.publish.catalog)

    @property
    def input_catalog(self) -> str | None:
        """Return the address or name of the input's catalogue (SQLite files as absolute paths)."""
        return self._catalog(self.input.catalog)

    def _catalog(self, catalog: str | None) -> str | None:
        if catalog is None or not catalog.startswith(SQLITE):
            return catalog
        return SQLITE + self.resolve(catalog.removeprefix(SQLITE))

    @property
    def catalog_table(self) -> str | None:
        """Return namespace and name of the release's table in its catalogue; None without one."""
        return None if self.publish.catalog is None else self.publish.table

    def with_role(self, *roles: str) -> tuple[str, ...]:
        """Return the names of the variables of these roles, in the order of the specification."""
        return tuple(name for name, variable in self.variables.items() if variable.role in roles)

    def _only(self, role: str) -> str | None:
        names = self.with_role(role)
        return names[0] if names else None

    @cached_property
    def quasi_identifiers(self) -> tuple[str, ...]:
        """Return the names of the quasi-identifiers, which are protected."""
        return self.with_role("quasi_identifier")

    @cached_property
    def nominal(self) -> tuple[str, ...]:
        """Return the quasi-identifiers with categories, including ordinal and hierarchical ones."""
        return tuple(name for name in self.quasi_identifiers if self.variables[name].kind in CATEGORIES)

    @cached_property
    def ordinal(self) -> tuple[str, ...]:
        """Return the quasi-identifiers whose categories have an order."""
        return tuple(name for name in self.quasi_identifiers if self.variables[name].kind == "ordinal")

    @cached_property
    def hierarchical(self) -> tuple[str, ...]:
        """Return the quasi-identifiers whose categories have a tree."""
        return tuple(name for name in self.quasi_identifiers if self.variables[name].kind == "hierarchical")

    @cached_property
    def numeric(self) -> tuple[str, ...]:
        """Return the numeric quasi-identifiers."""
        return tuple(name for name in self.quasi_identifiers if self.variables[name].kind == "numeric")

    @cached_property
    def sensitive(self) -> tuple[str, ...]:
        """Return the sensitive variables."""
        return self.with_role("sensitive")

    @cached_property
    def identifiers(self) -> tuple[str, ...]:
        """Return the identifiers, which the reader omits."""
        return self.with_role("identifier")

    @cached_property
    def region(self) -> str | None:
        """Return the region variable; None if there is none."""
        return self._only("region")

    @cached_property
    def household(self) -> str | None:
        """Return the household variable; None if there is none."""
        return self._only("household")

    @cached_property
    def unit(self) -> str | None:
        """Return the variable that identifies the statistical unit; None if there is none."""
        return self._only("unit")

    @cached_property
    def counted(self) -> str | None:
        """Return the variable whose values k counts, as `method.unit` states; None if k counts records."""
        return {"record": None, "household": self.household, "unit": self.unit}[self.method.unit]

    @cached_property
    def weights(self) -> tuple[str, ...]:
        """Return the sampling weights."""
        return self.with_role("weight")

    @cached_property
    def weight(self) -> str | None:
        """Return the sampling weight in use: the only one, or the one that `method.weight` names."""
        return self.method.weight or self._only("weight")

    @cached_property
    def further_weights(self) -> tuple[str, ...]:
        """Return the other sampling weights, such as those of a panel's second wave (zero or missing for
        records without one).
        """
        return tuple(name for name in self.weights if name != self.weight)

    def weighted_by(self, group: Group) -> str | None:
        """Return the weight that a clustering uses; None if it uses none."""
        return self.weight if self.method.weighted and self.strategy(group) == "microaggregation" else None

    @cached_property
    def weight_of_means(self) -> str | None:
        """Return the weight of the published means; None if they are unweighted."""
        by = [self.weighted_by(group) for group in self.clusterings]
        return next((name for name in by if name is not None), None)

    @cached_property
    def published(self) -> tuple[str, ...]:
        """Return the columns of the release in the order of the specification."""
        return self.with_role(*PUBLISHED)

    @cached_property
    def published_as_it_is(self) -> tuple[str, ...]:
        """Return the published columns that protection does not change."""
        return self.with_role(*PUBLISHED_AS_IT_IS)

    def kinds(self, variables: tuple[str, ...] | None = None) -> Kinds:
        """Return the kinds of the given quasi-identifiers (default: all): "nominal", "numeric" or "mixed".

        Ordinal and hierarchical quasi-identifiers count as nominal here, because one of their categories is
        published.
        """
        kinds = {
            "nominal" if self.variables[name].kind in CATEGORIES else self.variables[name].kind
            for name in variables or self.quasi_identifiers
            if name in self.variables
        }
        if kinds == {"nominal"}:
            return "nominal"
        return "numeric" if kinds == {"numeric"} else "mixed"

    @cached_property
    def needs_clusters(self) -> str | None:
        """Return, in words, the key that only clusters of records can satisfy; None if there is none."""
        if self.method.min_diversity > 1:
            return "min_diversity above 1"
        if self.counted is not None:
            return f"unit {self.method.unit}"
        return None

    @cached_property
    def declared(self) -> Variables:
        """Return the properties of the variables that methods use."""
        return Variables(
            {name: str(self.variables[name].kind) for name in self.quasi_identifiers},
            {name: variable.role for name, variable in self.variables.items()},
            self.published,
            self.publish.partition_by,
        )

    @property
    def _row(self) -> MethodRow:
        return method_row("records", self.method.name)

    @property
    def swapped(self) -> bool:
        """Return whether the areas of records are exchanged (record swapping)."""
        row = BUILT_IN.get(self.method.name)
        return row is not None and row.changes == "areas"

    @property
    def coarsened(self) -> bool:
        """Return whether values are suppressed or generalised, so that no record receives another value."""
        return self._row.changes == "coarser"

    @property
    def clustered(self) -> bool:
        """Return whether records or combinations are protected in clusters and not separately."""
        return self.method.name in STRATEGIES

    @property
    def perturbed(self) -> bool:
        """Return whether the values of each quasi-identifier are changed at random."""
        return not self.swapped and "measured only" in self._row.guarantees

    @property
    def secretly_changed(self) -> bool:
        """Return whether readers must not know which records were changed: no method promises more."""
        return self.swapped or self.perturbed

    @cached_property
    def withholds_values(self) -> bool:
        """Return whether classes of a register with diversity may be published without sensitive values."""
        return self.publish.series == "register" and self.method.min_diversity > 1

    @cached_property
    def clusterings(self) -> tuple[Group, ...]:
        """Return the variables clustered together: the groups, or all quasi-identifiers."""
        return self.groups or (Group(name=WHOLE, variables=self.quasi_identifiers),)

    def strategy(self, group: Group) -> Strategy:
        """Return the strategy of a clustering: frequencies, unless a key requires clusters."""
        if self.method.name == "safe":
            return "safe"
        if self.method.name not in STRATEGIES:
            return "other"
        by_frequency = (
            self.kinds(group.variables) == "nominal"
            and self.method.representative in BY_CONTROL_TABLES
            and self.needs_clusters is None
        )
        return "frequency" if by_frequency else "microaggregation"

    @cached_property
    def control_tables(self) -> tuple[tuple[str, ...], ...]:
        """Return the control tables by name; no table combines variables of several groups.

        They are the listed tables, or all tables up to `max_dimension`. In addition, the region, named first,
        is combined with all tables up to `region_dimension`.
        """
        chosen = self.method.control_tables
        listed = chosen.tables
        tables = self._tables_up_to(chosen.max_dimension or DEFAULT_DIMENSION) if listed is None else listed
        if self.region is None:
            return tables
        known = {frozenset(table) for table in tables}
        by_region = [(self.region, *table) for table in self._tables_up_to(chosen.region_dimension)]
        return (*tables, *[table for table in by_region if frozenset(table) not in known])

    def _tables_up_to(self, most: int) -> tuple[tuple[str, ...], ...]:
        """Return all tables of the nominal quasi-identifiers of each clustering, up to a dimension."""
        return tuple(
            table
            for clustering in self.clusterings
            for dimension in range(1, most + 1)
            for table in combinations([n for n in clustering.variables if n in self.nominal], dimension)
        )

    @cached_property
    def population_key(self) -> tuple[str, ...]:
        """Return the variables by which the population is counted."""
        given = None if self.population is None else self.population.variables
        return (*([] if self.region is None else [self.region]), *self.nominal) if given is None else given

    @cached_property
    def edit_rules(self) -> dict[str, Rule]:
        """Return the parsed edit rules."""
        return {name: parse_rule(text) for name, text in self.rules.items()}

    @cached_property
    def derived_expressions(self) -> dict[str, Expression]:
        """Return the parsed expressions of derived columns."""
        from microguard.schemas.expressions import parse_expression

        return {name: parse_expression(text) for name, text in self.derived.items()}

    @cached_property
    def max_block_records(self) -> int:
        """Return the maximum number of records of a block; "auto" is at least 2k."""
        if self.blocking.max_records != "auto":
            return self.blocking.max_records
        method = self.method
        most = min(
            max_records(self.strategy(each), method.algorithm, method.effort) for each in self.clusterings
        )
        return max(most, 2 * self.release.k)
