"""`[table]`: the table that `microguard adjust` protects, and the method of protection.

Every column named in `[table]` is also declared in `[variables]`, like any column of the input: dimensions as
categories, values as numbers.

From microdata the cells are counted (`kind = "frequency"`) or added up (`kind = "magnitude"`). A dimension is
named by its finest column; a hierarchy that contains this column lists the coarser columns above it:

    [table]
    value = "turnover"
    tables = [["a88", "nuts3"]]
    hierarchies = [["a10", "a21", "a88"], ["nuts1", "nuts2", "nuts3"]]

is one table of all activities and regions of every level with all margins. Two tables are linked by the
columns they share, `tables = [["a21", "size"], ["a21", "nuts1"]]`: a cell in both tables is published with
one value.

A column may have several hierarchies. A later hierarchy that ends in a column of an earlier one groups the
codes of this column again. Tables of its coarser columns are linked with the tables of this column:

    [table]
    value = "turnover"
    tables = [["a88", "size"], ["branch", "size"]]
    hierarchies = [["a10", "a21", "a88"], ["branch", "a88"]]

Amounts that add up to another amount (turnover at home and abroad) are an additional dimension. Its codes are
the columns of the amounts and its total is the value. Name it in every table that should contain it:

    [table]
    value = "turnover"
    tables = [["a21", "market"], ["a21", "nuts2"]]
    [table.parts]
    market = ["turnover_home", "turnover_abroad"]

Counts may be rounded to a base, additively and without bias, instead of adjusted:

    [table]
    kind = "frequency"
    tables = [["a21", "nuts2"]]
    method = "rounding"
    base = 5

Or only the small counts are rounded, to 0 or the base (`method = "small_count_rounding"`).

Or counts are published with bounded noise by record keys. The noise is the same for the same records in every
table, and totals do not add up:

    [table]
    kind = "frequency"
    tables = [["a21", "nuts2"]]
    method = "cell_key"

Or sensitive cells are suppressed, with further cells, so that nobody can compute them from the rest:

    [table]
    value = "turnover"
    tables = [["a88", "size"]]
    hierarchies = [["a10", "a21", "a88"]]
    method = "suppression"
    costs = "value"

With `source = "cells"` the file has one row per cell, margins included; `total` marks a column that is summed
over. `[table.parents.COLUMN]` nests codes of several levels in one column, code = its parent:

    [table]
    source = "cells"
    value = "tot"
    tables = [["activity", "size"]]
    contributors = "n_obs"
    largest = ["max"]
    [table.parents.activity]
    47 = "G"
    G = "GI"
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from microguard.schemas.method_registry import BUILT_IN, MethodRow, method_row
from microguard.schemas.specification.parameters import method_parameters
from microguard.schemas.specification.section import (
    Bound,
    Count,
    Names,
    OneOf,
    OneOfOrText,
    PathText,
    Text,
)
from microguard.schemas.specification.sections import Dominance
from microguard.schemas.specification.table_contributors import TableContributors
from microguard.schemas.specification.table_quality import NoiseScaling, TablePreserve, TableQuality
from microguard.sdc.algorithms.adjustment import ADJUSTMENT
from microguard.sdc.algorithms.algorithm import Effort
from microguard.sdc.algorithms.parameters import Parameters
from pydantic import BeforeValidator, Field

TableMethodName = Annotated[
    Text, OneOfOrText(*(name for name, row in BUILT_IN.items() if row.content == "table"))
]
TableAlgorithm = Annotated[str, OneOf("auto", *ADJUSTMENT)]
COSTS = ("unit", "inverse")
SUPPRESSION_COSTS = ("value", "number", "contributors")
Attacker = Literal["outsider", "single", "pair", "unit"]
ATTACKERS: tuple[Attacker, ...] = ("outsider", "single", "pair", "unit")
DEFAULT_P_PERCENT = 10.0
"""Default percentage of the p-percent rule for magnitudes of records without a dominance rule."""
DEFAULT_DECIMALS = 2
"""Default maximum number of decimals of a table of magnitudes or weighted counts."""


def _several(value: Any) -> Any:
    """Return one rule, a list of rules, or None as a list."""
    if value is None:
        return ()
    return (value,) if isinstance(value, (dict, Dominance)) else value


_OneOrSeveral = BeforeValidator(_several, json_schema_input_type=Dominance | tuple[Dominance, ...])


class Table(TableContributors):
    """`[table]`: the table that `microguard adjust` protects."""

    source: Literal["microdata", "cells"] = "microdata"
    """Whether the input contains records, or the cells of a finished table."""
    kind: Literal["magnitude", "frequency"] = "magnitude"
    """Sums of a value, or counts of records. The minimum frequency of a count refers to the units behind it;
    the number of records of one unit is ignored. If units have many records, use a table of magnitudes that
    sums a column of ones, because its rules consider the largest contributors."""
    value: Text | None = None
    """Magnitude: the column to sum. Cells: the column with the values."""
    weighted: bool = False
    """Microdata: whether values (or counts) are multiplied by the variable of role weight. The dominance and
    p-percent rules treat a contribution of weight w like w equal contributions to the weighted total, as in
    the handbook on statistical disclosure control and tau-ARGUS (a weight below 1 counts as 1); contributors
    are counted without weights."""
    tables: Annotated[tuple[Names, ...], Field(strict=False)] = Field(min_length=1)
    """The tables by their dimensions, each named by its finest column; common cells link several tables."""
    hierarchies: Annotated[tuple[Names, ...], Field(strict=False)] = ()
    """Nested columns, coarse to fine. For microdata, a later hierarchy may end in a column of an earlier one
    and group its codes differently: tables of its coarser columns are then linked with tables of that column.
    """
    parents: dict[Text, dict[Text, Text]] = Field(default={})
    """For each column, the parent of each code; a code that is not named is a part of the total. Records must
    have the finest codes, from which the cells of all other codes are summed."""
    code_widths: dict[Text, Annotated[tuple[Annotated[Count, Field(ge=1)], ...], Field(strict=False)]] = (
        Field(default={})
    )
    """Column whose codes are nested by their first characters, with the number of characters of each level
    from coarse to fine, such as `[1, 3, 5]`: 34110 is a part of 341, which is a part of 3 (`<HIERLEVELS>`).
    Fills `parents`."""
    parts: dict[Text, Names] = Field(default={})
    """Microdata, magnitudes: for a dimension that is no column of the input, the columns that are its codes.
    In every record their sum must equal the value, up to half a unit of the last published digit; a record
    contributes to the columns that are not 0."""
    total: Text = "Total"
    """Code of a dimension that is summed over, in the input (cells) and in the release."""
    totals: dict[Text, Text] = Field(default={})
    """Cells: for each column, its total code if it differs from `total`; the release uses `total`."""
    decimals: int | None = Field(default=None, ge=0, le=9)
    """Number of decimals of the published values. By default as many as the values have, at most 2, and none
    for counts: further digits would show which cells were changed. Each record is rounded before it is added,
    so that all margins are exact sums."""
    tolerance: Bound | None = None
    """Cells: maximum difference between a given total and the sum of its parts that counts as rounding; such
    totals are summed again, and the evidence contains their number. By default half a unit of the last digit
    of the values (at most of 1), for the total and for each part."""
    margins: Literal["given", "computed"] = "given"
    """Cells: whether the file contains the margins of a table, or only internal cells; in the latter case
    values, contributors and largest contributions of the margins are computed."""
    shadow: Text | None = None
    """Cells: column with the sums to which the rules apply, if it is not `value` (tau-ARGUS `<SHADOW>`)."""
    contributors: Text | None = None
    """Cells: column with the number of contributors."""
    largest: Names = ()
    """Cells: columns with the largest contribution, the second largest and so on."""
    minimum_frequency: Annotated[Count, Field(ge=1)] | None = None
    """A cell with fewer contributors is sensitive; by default release.k, if contributors are known."""
    safety_range: float = Field(default=20, gt=0, allow_inf_nan=False)
    """Level of a magnitude or weighted count with too few contributors, in percent of its value."""
    zero_safety_range: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Protection level of a cell of 0 that `status` or `a_priori` declares sensitive, in the unit of the
    value (the zero safety range of tau-ARGUS). Without it such a cell is refused unless it has its own
    levels, because a percentage of 0 is 0."""
    dominance: Annotated[tuple[Dominance, ...], _OneOrSeveral, Field(strict=False)] = ()
    """Dominance rule: a cell is sensitive if its n largest contributors exceed k percent of it; with a list
    of rules, if any of them is violated. Contributions count by their absolute size."""
    p_percent: float | None = Field(default=None, gt=0, le=100, allow_inf_nan=False)
    """p-percent rule: a cell is sensitive if its second largest contributor can estimate the largest to
    within p percent. By default 10, if records are summed and no dominance rule is given."""
    q_percent: float = Field(default=100, gt=0, le=100, allow_inf_nan=False)
    """With p_percent, the prior-posterior rule: before publication everybody could estimate every
    contribution to within q percent; 100 is the p-percent rule itself."""
    lower_protection: Text | None = None
    """Cells: column with lower protection levels, which make cells sensitive. With upper_protection."""
    upper_protection: Text | None = None
    """Cells: column with given levels, up."""
    sliding_protection: Text | None = None
    """Suppression of cells: column with given sliding protection levels: the required width of the interval
    of a sensitive cell, whatever its position."""
    status: Text | None = None
    """Cells: column with a status that is known before any rule and has precedence over the rules."""
    statuses: dict[Text, Literal["safe", "sensitive", "fixed", "suppressed", "empty"]] = Field(default={})
    """Cells: meanings of the codes of `status`, by default themselves; "empty": no value, no contributors."""
    capacity: float = Field(default=100, ge=0, allow_inf_nan=False)
    """Maximum change of a cell, in percent of its value; a sensitive cell may change as much as its
    protection requires. It is a limit, not a target: with a low limit, small totals have no space for the
    wide bands of secret levels. Suppression: the precision with which readers know every cell beforehand, in
    percent of its value; for a sensitive cell at best as precisely as its protection allows."""
    lower_capacity: Text | None = None
    """Cells: column with given lower capacities, in place of the percentage. With upper_capacity."""
    upper_capacity: Text | None = None
    """Cells: column with given capacities, up."""
    a_priori: PathText | None = None
    """A CSV file with information about single cells that has precedence over the rules, relative to the
    specification. It contains columns of the table (missing ones are summed over), `status` (safe, sensitive,
    fixed, with suppression also suppressed, or nothing), and levels, capacities and costs of single cells. Or
    a tau-ARGUS file (`.hst`): the codes, then s, u, p, c with a cost, or pl with two levels, which make a
    cell sensitive. Not for counts, unless cells are suppressed."""
    fixed_margins: bool = False
    """Whether margins that are not sensitive keep their values."""
    relax: tuple[Literal["capacities", "fixed", "adjacent"], ...] = Field(default=(), strict=False)
    """Conditions that are relaxed, in this order and as little as possible, if a table is proved infeasible.
    Magnitudes: capacities of cells that are not sensitive, then cells that may not change at all. Rounded
    counts: "adjacent", cells may exceed the multiples next to them by one base, or by three. Protection,
    zeros and values published before are never relaxed. The evidence counts the relaxed cells."""
    costs: Text = "unit"
    """Cost of a unit of change: "unit" (equal for all cells, the default), "inverse" (1 over the value) or,
    for cells, a column. Cost of a suppressed cell: "value" (the default), "number" (equal for all cells),
    "contributors" or, for cells, a column."""
    attackers: Annotated[tuple[Attacker, ...], Field(strict=False)] = ATTACKERS
    """Suppression: attackers against whom the interval of every sensitive cell that is not their own must be
    as wide as the levels. "outsider" is every reader, "single" the only contributor of a cell, "pair" the two
    contributors of a cell together, and "unit" a contributor who knows all its own cells. For cells without
    numbers of contributors, only "outsider"."""
    method: TableMethodName = "adjustment"
    """Protection method of the table. "adjustment": sensitive cells are changed to safe values, and other
    cells at the least cost. "rounding" (unbiased controlled rounding, counts): the secret key draws an
    adjacent multiple of `base` for every cell, and every total is the sum of its parts. Its expectation is
    the true count in two dimensions (at most one of them hierarchical), and in tables of up to 400 cells if
    additive multiples allow it; otherwise it is close to it. "small_count_rounding" (counts): only counts
    below `base` become 0 or `base`, with the least change; other counts remain, except totals of small ones.
    "cell_key": every count has bounded noise of mean 0, derived from the keys of its records and equal in
    every table; totals are not additive. It requires a variable of role unit with one record each and, for
    amounts, `noise_table` and `noise_scaling`. "suppression": sensitive cells and, at the least cost, further
    cells have no value, so that each of the `attackers` can compute only a wide interval. Or an installed
    third-party method."""
    parameters: dict[Text, Any] = Field(default={})
    """Parameters of a third-party method."""
    base: Annotated[Count, Field(ge=2)] | None = None
    """Rounding: the number whose multiples are published; for small count rounding, the least published count
    above 0. At least the minimum frequency, because a smaller base would reveal too small cells."""
    largest_noise: Annotated[Count, Field(ge=2)] | None = None
    """Cell keys: maximum difference of published and true counts; by default the minimum frequency plus 2."""
    noise_variance: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Cell keys: variance of the noise. By default that of a draw between 0 and the minimum frequency at its
    most uncertain (2 for 3, 6 for 5, 25 for 10). Counts too small for this variance have the nearest one that
    is unbiased."""
    noise_table: PathText | None = None
    """Cell keys: an office's own p-table in place of both, relative to the specification: a text file in the
    format of ptable and tau-ARGUS, with the columns i, j and p separated by semicolons. Its noise must have
    mean 0, and its smallest published count above 0 must be the minimum frequency. Required for amounts, for
    which i and j are amounts divided by the scale of the noise (tau-ARGUS `<PFILE_CONT>`)."""
    small_noise_table: PathText | None = None
    """Cell keys of amounts: a p-table for cells whose largest contribution is below the separation point; its
    noise is in units of the amount itself (tau-ARGUS `<PFILE_SEP>`). The separation point is the standard
    deviation of its last row, divided by p_small and by the root of the sum of squares of epsilon."""
    noise_scaling: NoiseScaling | None = None
    """Cell keys of amounts: the scale of the noise."""
    swapped: bool = False
    """Cell keys: whether records are counted or summed after `[method] name = "swapping"` exchanged their
    areas. Requires a variable of role household and `missing.max_rejected = 0`, so that all tables exchange
    the same units."""
    mode: Literal["at-least", "exact"] = "at-least"
    """Whether sensitive cells change by at least their level, or by exactly one of their two levels."""
    levels: Literal["secret", "exact"] = "secret"
    """Magnitudes: whether levels are multiplied by secret factors, or used exactly as the rule defines them;
    in the latter case, an attacker who knows the rule has only two candidates for a cell. Counts: whether
    small counts are drawn by the secret key, or changed at the least cost to the nearest allowed count, which
    an attacker who knows the method can reverse."""
    spread: float = Field(default=1.0, ge=0, le=1)
    """With secret levels: width of the band of a changed value, as half of it over the protected share of its
    middle. With 1, an attacker who knows the direction cannot estimate the value to within the protected
    percentage; a smaller spread costs less."""
    zeros: Literal["all", "omit"] = "all"
    """Counts: whether every combination of codes is published (except codes with only zeros), or no zero at
    all, so that true zeros and small counts published as 0 look the same."""
    tau_argus: bool = False
    """Whether the protected tables are also published as tau-ARGUS files (`.tab`, `.rda`, `.hrc`): codes and
    values, with suppression also the status S or U (published, suppressed); they do not show which cells are
    sensitive."""
    effort: Effort = "standard"
    """Amount of work for the table."""
    algorithm: TableAlgorithm = "auto"
    """The method, by name."""
    quality: TableQuality = TableQuality()
    """The gate."""
    preserve: TablePreserve = TablePreserve()
    """Statistics that are preserved."""

    def method_parameters(self, row: MethodRow) -> Parameters | None:
        """Return the parameters of the method, as its row declares them."""
        return method_parameters(row, self.parameters)

    @property
    def digits(self) -> int:
        """Return the number of decimals: `decimals`, by default 0 for counts and 2 otherwise."""
        if self.decimals is not None:
            return self.decimals
        return 0 if self.counts else DEFAULT_DECIMALS

    @property
    def estimable_within(self) -> float | None:
        """Return `p_percent` or its default; None if no such rule applies."""
        added_up = self.source == "microdata" and self.kind == "magnitude" and self.request is None
        return (
            DEFAULT_P_PERCENT
            if added_up and self.p_percent is None and not self.dominance
            else self.p_percent
        )

    @property
    def counts(self) -> bool:
        """Return whether the cells are unweighted numbers of contributors."""
        return self.kind == "frequency" and not self.weighted

    @property
    def dimensions(self) -> tuple[str, ...]:
        """Return the distinct finest columns of all tables."""
        return tuple(dict.fromkeys(name for table in self.tables for name in table))

    def levels_of(self, dimension: str) -> tuple[str, ...]:
        """Return the columns of a dimension from coarse to fine, down to the named column."""
        for hierarchy in self.hierarchies:
            if dimension in hierarchy:
                return hierarchy[: hierarchy.index(dimension) + 1]
        return (dimension,)

    @property
    def groupings(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return the columns that a later hierarchy groups again, with their higher columns in tables."""
        placed: set[str] = set()
        regrouped = []
        for hierarchy in self.hierarchies:
            if hierarchy[-1] in placed:
                above = tuple(name for name in hierarchy[:-1] if name in self.columns)
                regrouped.append((hierarchy[-1], above))
            placed |= set(hierarchy)
        return tuple(regrouped)

    @property
    def expanded(self) -> tuple[str, ...]:
        """Return the columns in which records count once per code: parts of a value, nested codes."""
        return () if self.source == "cells" else (*self.parts, *self.parents)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the distinct columns that contain codes."""
        return tuple(dict.fromkeys(name for each in self.dimensions for name in self.levels_of(each)))

    @property
    def suppressed(self) -> bool:
        """Return whether the method publishes cells without a value (suppression)."""
        return "suppressed table" in method_row("table", self.method).guarantees

    @property
    def contributors_known(self) -> bool:
        """Return whether the contributors of cells, or at least their number, are known."""
        return self.source == "microdata" or self.kind == "frequency" or self.contributors is not None

    @property
    def cost_names(self) -> tuple[str, ...]:
        """Return the allowed values of `costs` that are not columns; the default is first."""
        return SUPPRESSION_COSTS if self.method == "suppression" else COSTS

    @property
    def cost_rule(self) -> str:
        """Return `costs`, or the default of the method."""
        return self.costs if "costs" in self.model_fields_set else self.cost_names[0]

    @property
    def cost_column(self) -> str | None:
        """Return the column with given costs; None if there is none."""
        return None if self.cost_rule in {*COSTS, *self.cost_names} else self.costs

    @property
    def numbers(self) -> tuple[str, ...]:
        """Return the columns of the input that contain numbers."""
        parts = (name for columns in self.parts.values() for name in columns)
        named = (self.value, *parts, self.contributors, *self.largest, self.lower_protection,
                 self.upper_protection, self.sliding_protection, self.lower_capacity, self.upper_capacity,
                 self.cost_column, self.shadow)  # fmt: skip
        return tuple(dict.fromkeys(name for name in named if name is not None))

    @property
    def value_name(self) -> str:
        """Return the name of the published column of values."""
        return self.value or "frequency"
