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
"""Of magnitudes of records, where no rule of dominance is given."""
DEFAULT_DECIMALS = 2
"""Most digits after the point by default, of a table of magnitudes or of weighted counts."""


def _several(value: Any) -> Any:
    """Return one rule, a list of rules, or None as a list."""
    if value is None:
        return ()
    return (value,) if isinstance(value, (dict, Dominance)) else value


_OneOrSeveral = BeforeValidator(_several, json_schema_input_type=Dominance | tuple[Dominance, ...])


class Table(TableContributors):
    """`[table]`: the table that `microguard adjust` protects."""

    source: Literal["microdata", "cells"] = "microdata"
    """Whether the input has records, or the cells of a finished table."""
    kind: Literal["magnitude", "frequency"] = "magnitude"
    """Sums of a value, or counts of records. The minimum frequency of a count is of the units behind it; how
    many of its records are of one unit is not looked at. Where units have many records, make the table one of
    magnitudes of a column of ones, whose rules look at the largest contributors."""
    value: Text | None = None
    """Magnitude: the column that is added up. Cells: the column with the values."""
    weighted: bool = False
    """Microdata: values (or counts) are multiplied by the variable of role weight. The rules of dominance and
    of p percent take a contribution of weight w for w equal ones next to the weighted total, as the field's
    handbook and tau-ARGUS do (a weight below 1 for one); contributors are counted without weights."""
    tables: Annotated[tuple[Names, ...], Field(strict=False)] = Field(min_length=1)
    """The tables by their dimensions, the finest column of each; several are linked by what they share."""
    hierarchies: Annotated[tuple[Names, ...], Field(strict=False)] = ()
    """Columns that nest, coarse to fine. From microdata, a later hierarchy may end in a column of an earlier
    one and group its codes differently: tables of its coarser columns are linked with those of it."""
    parents: dict[Text, dict[Text, Text]] = Field(default={})
    """Column -> code -> the code it is a part of; a code not named is a part of the total. Records have the
    finest codes, of which the cells of the others are added up."""
    code_widths: dict[Text, Annotated[tuple[Annotated[Count, Field(ge=1)], ...], Field(strict=False)]] = (
        Field(default={})
    )
    """Column whose codes nest by their first characters -> number of characters of each level from coarse to
    fine, such as `[1, 3, 5]`: 34110 is a part of 341, and that of 3 (tau-ARGUS `<HIERLEVELS>`). Fills
    `parents`."""
    parts: dict[Text, Names] = Field(default={})
    """Microdata, magnitudes: a dimension that is no column of the input -> the columns that are its codes. In
    every record they add up to the value, within half of the last published digit; a record contributes to
    those of them that are not 0."""
    total: Text = "Total"
    """What stands in a dimension that is summed over, in the input (cells) and in the release."""
    totals: dict[Text, Text] = Field(default={})
    """Cells: column -> what stands in it where it is summed over, if that is not `total`; the release has
    `total`."""
    decimals: int | None = Field(default=None, ge=0, le=9)
    """Digits after the point of the published values; by default as many as the values have, 2 at the most,
    and none for counts: of more the last digits would tell which cells were moved. Each record is rounded to
    them before it is added, so that all margins agree to the last digit."""
    tolerance: Bound | None = None
    """Cells: largest difference of a given total from the sum of its parts that is taken for rounding; the
    totals are then summed again, and the evidence says how many. By default what rounding explains: half of
    the last digit that they have (at most of 1) for the total and for each part."""
    margins: Literal["given", "computed"] = "given"
    """Cells: whether the file has the margins of a table, or internal cells only, whose values, contributors
    and largest contributions are added up."""
    shadow: Text | None = None
    """Cells: column with the sums of contributions that the rules look at, if not `value` (tau-ARGUS
    `<SHADOW>`)."""
    contributors: Text | None = None
    """Cells: column with the number of contributors."""
    largest: Names = ()
    """Cells: columns with the largest contribution, the second largest and so on."""
    minimum_frequency: Annotated[Count, Field(ge=1)] | None = None
    """A cell with fewer contributors is sensitive; by default release.k, where contributors are known."""
    safety_range: float = Field(default=20, gt=0, allow_inf_nan=False)
    """Protection of a magnitude (or weighted count) with too few contributors, in percent of its value."""
    zero_safety_range: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Protection of a cell of 0 that `status` or `a_priori` declares sensitive, in the unit of the value (the
    zero safety range of tau-ARGUS). Without it such a cell is refused, unless it has levels of its own: no
    percentage of 0 protects."""
    dominance: Annotated[tuple[Dominance, ...], _OneOrSeveral, Field(strict=False)] = ()
    """A cell is sensitive whose n largest contributors exceed k percent of it; several rules as a list, each
    of which makes sensitive. Contributions count by size, whatever their sign."""
    p_percent: float | None = Field(default=None, gt=0, le=100, allow_inf_nan=False)
    """A cell is sensitive whose second largest contributor can estimate the largest to p percent; 10 by
    default where records are added up and no rule of dominance is given."""
    q_percent: float = Field(default=100, gt=0, le=100, allow_inf_nan=False)
    """With p_percent, the prior-posterior rule: everybody could estimate every contribution to q percent
    before; 100 is the p-percent rule itself."""
    lower_protection: Text | None = None
    """Cells: column with given levels, down; a cell with a level is sensitive. With upper_protection."""
    upper_protection: Text | None = None
    """Cells: column with given levels, up."""
    sliding_protection: Text | None = None
    """Suppression of cells: column with given sliding levels: how wide the interval of a sensitive cell must
    be, wherever it lies."""
    status: Text | None = None
    """Cells: column that says what is known of a cell before any rule; it stands over the rules."""
    statuses: dict[Text, Literal["safe", "sensitive", "fixed", "suppressed"]] = Field(default={})
    """Cells: what the codes of `status` mean; the words themselves where nothing is given, and nothing is
    known of a cell whose code is missing."""
    capacity: float = Field(default=100, ge=0, allow_inf_nan=False)
    """How far a cell may move, in percent of its value; a sensitive one as far as its protection needs. A
    limit, not an aim: with little of it the wide bands of secret levels have no room in small totals.
    Suppression: how closely readers know every cell beforehand, in percent of its value; a sensitive one at
    best as closely as its protection allows."""
    lower_capacity: Text | None = None
    """Cells: column with given capacities, down, instead of percent. With upper_capacity."""
    upper_capacity: Text | None = None
    """Cells: column with given capacities, up."""
    a_priori: PathText | None = None
    """A CSV file of what is known of single cells before any rule, relative to the specification:
    columns of the table (those left out are summed over), `status` (safe, sensitive, fixed, with suppression
    also suppressed, or nothing), and levels, capacities and costs of their own. Or a tau-ARGUS file
    (`.hst`): the codes, then s, u, p, c with a cost, or pl with two levels, which make sensitive. Not for
    counts, unless cells are suppressed."""
    fixed_margins: bool = False
    """Whether margins that are not sensitive keep their values."""
    relax: tuple[Literal["capacities", "fixed", "adjacent"], ...] = Field(default=(), strict=False)
    """What gives way, in this order and as little as it can, where a table is proved impossible to protect.
    Magnitudes: capacities of cells that are not sensitive, and then cells that may not move at all. Rounded
    counts: "adjacent", cells may go one base beyond the multiples next to them, or three. Protection, zeros
    and values published before never give way. The evidence counts what did."""
    costs: Text = "unit"
    """What a unit of change costs: "unit" (the same everywhere, the default), "inverse" (1 over the value)
    or, for cells, a column. What a suppressed cell costs: "value" (the default), "number" (the same for
    each), "contributors" or, for cells, a column."""
    attackers: Annotated[tuple[Attacker, ...], Field(strict=False)] = ATTACKERS
    """Suppression: who must be left with an interval as wide as the levels of every sensitive cell that is
    not their own: "outsider" (every reader), "single" (the only contributor of a cell), "pair" (the two
    contributors of a cell together) and "unit" (a contributor who knows all cells that are its own). Of cells
    without numbers of contributors only "outsider"."""
    method: TableMethodName = "adjustment"
    """How the table is protected: sensitive cells go to where they are safe and others follow at least cost
    ("adjustment"); or, of counts, every cell goes to a multiple of `base` next to it, up or down by the
    secret key, so that its expectation is the true count in two dimensions, one of them hierarchical at most,
    and in tables of up to 400 cells wherever additive multiples allow it (else near it), and every total
    is the sum of its parts ("rounding": unbiased controlled rounding); or only counts below `base` go to 0 or
    to it, at least change, and others stay but totals of these ("small_count_rounding"); or every count gets
    bounded noise of mean 0 by the keys of the records behind it, the same in every table, and totals do not
    add up ("cell_key": needs a variable of role unit, one record each; of amounts also `noise_table` and
    `noise_scaling`); or sensitive cells have no value, and
    others with them at least cost, so that whoever is among `attackers` is left with a wide interval of each
    ("suppression"). Or an installed method of a third party."""
    parameters: dict[Text, Any] = Field(default={})
    """Parameters of a method of a third party."""
    base: Annotated[Count, Field(ge=2)] | None = None
    """Rounding: the number whose multiples are published, or below which no count above 0 is (small count
    rounding); the minimum frequency or more, as with less of it a cell shows that it is too small."""
    largest_noise: Annotated[Count, Field(ge=2)] | None = None
    """Cell keys: how far a published count may be from the true one, the minimum frequency or more; by
    default 2 more than it."""
    noise_variance: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Cell keys: variance of the noise; by default that of a draw between 0 and the minimum frequency where
    it is most open (2 for 3, 6 for 5, 25 for 10). Counts too small to have it have the nearest that
    is unbiased."""
    noise_table: PathText | None = None
    """Cell keys: an office's own p-table in place of both, relative to the specification: a text file in the
    format of ptable and tau-ARGUS, with the columns i, j and p between semicolons. Its noise has mean 0, and
    its smallest published count above 0 is the minimum frequency. Of amounts it is needed, and i and j are
    amounts over the scale of the noise (tau-ARGUS `<PFILE_CONT>`)."""
    small_noise_table: PathText | None = None
    """Cell keys of amounts: a p-table for cells whose largest contribution is below the separation point,
    whose noise is in units of the amount itself (tau-ARGUS `<PFILE_SEP>`). The point is the standard
    deviation of its last row over p_small and over the root of the sum of squares of epsilon."""
    noise_scaling: NoiseScaling | None = None
    """Cell keys of amounts: how large the noise is."""
    swapped: bool = False
    """Cell keys: count or add up the records after `[method] name = "swapping"` exchanged their areas.
    Needs a variable of role household and `missing.max_rejected = 0`: all tables exchange the same units."""
    mode: Literal["at-least", "exact"] = "at-least"
    """Sensitive cells move by at least their level, or by exactly one of their two levels."""
    levels: Literal["secret", "exact"] = "secret"
    """Magnitudes: levels multiplied by secret factors, or exactly as the rule has them: then an attacker who
    knows the rule is left with two candidates for a cell. Counts: small ones drawn by the secret key, or
    moved by least cost to the nearest count allowed, which whoever knows the method undoes."""
    spread: float = Field(default=1.0, ge=0, le=1)
    """With secret levels: how wide the band of a changed value is, half of it over the protected share of its
    middle. 1: knowing the direction does not give the protected per cent away; less costs less."""
    zeros: Literal["all", "omit"] = "all"
    """Counts: every combination of codes is published, but of codes of nothing but zeros, or no zero at all,
    so that true zeros and small counts published as 0 look alike."""
    tau_argus: bool = False
    """Whether the protected tables are published as tau-ARGUS files (`.tab`, `.rda`, `.hrc`) as well: codes
    and values, with suppression also the status S or U (published, suppressed); nothing tells what is
    sensitive. `input.metadata` asks for it."""
    effort: Effort = "standard"
    """How much work the table is worth."""
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
        """Return the digits after the decimal point: `decimals`, by default 0 for counts and 2 otherwise."""
        if self.decimals is not None:
            return self.decimals
        return 0 if self.counts else DEFAULT_DECIMALS

    @property
    def estimable_within(self) -> float | None:
        """Return `p_percent` with its default; None if no such rule holds."""
        added_up = self.source == "microdata" and self.kind == "magnitude" and self.request is None
        return (
            DEFAULT_P_PERCENT
            if added_up and self.p_percent is None and not self.dominance
            else self.p_percent
        )

    @property
    def counts(self) -> bool:
        """Return whether the cells are numbers of contributors without weights."""
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
        """Return columns that a later hierarchy groups again, with their higher columns in tables."""
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
        """Return columns whose records count once in each code: parts of a value and nested codes."""
        return () if self.source == "cells" else (*self.parts, *self.parents)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the distinct columns that contain codes."""
        return tuple(dict.fromkeys(name for each in self.dimensions for name in self.levels_of(each)))

    @property
    def suppressed(self) -> bool:
        """Return whether the method publishes cells without a value."""
        return "suppressed table" in method_row("table", self.method).guarantees

    @property
    def contributors_known(self) -> bool:
        """Return whether the contributors of cells, or at least their number, are known."""
        return self.source == "microdata" or self.kind == "frequency" or self.contributors is not None

    @property
    def cost_names(self) -> tuple[str, ...]:
        """Return the values of `costs` that are not columns, the default first."""
        return SUPPRESSION_COSTS if self.method == "suppression" else COSTS

    @property
    def cost_rule(self) -> str:
        """Return `costs` with the default of the method."""
        return self.costs if "costs" in self.model_fields_set else self.cost_names[0]

    @property
    def cost_column(self) -> str | None:
        """Return the column with given costs, if any."""
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
