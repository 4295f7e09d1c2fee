"""The sections of a release specification: frozen models that mirror its TOML one to one."""

from __future__ import annotations

import re
from math import isfinite
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from schemas.methods import Effort, MethodName, Representative, Unit
from schemas.roles import Disclosable, Kind, Role

NAME_PATTERN = r"^\w[\w.-]{0,99}$"
"""A release or group name is a folder name: letters, digits, "_", "." and "-"."""


LARGEST_COUNT = 10**10
"""Records, units or releases: more than any file has."""
LARGEST_DIMENSION = 99
"""Of a table: more than anybody can read."""
LARGEST_WEIGHT = 10**6
"""Of a variable: the others decide nothing beyond it, and squares of coordinates stay finite."""


def _dimension_keys(value: Any) -> Any:
    """Keys of a TOML table are text; those of a table by dimension are whole numbers."""
    if not isinstance(value, dict):
        return value
    if not value or not all(isinstance(key, str) and re.fullmatch("[1-9][0-9]?", key) for key in value):
        raise ValueError("a table of bounds by dimension, such as { 1 = 6, 2 = 9 }")
    return {int(key): bound for key, bound in value.items()}


def _without_nul(value: Any) -> Any:
    if isinstance(value, str) and "\0" in value:
        raise ValueError("a path without the character NUL")
    return value


def _auto_or_count(value: Any) -> Any:
    if value == "auto" or (type(value) is int and 2 <= value <= LARGEST_COUNT):
        return value
    raise ValueError(f'"auto" or a whole number of at least 2 and at most {LARGEST_COUNT:,}')


def _code(value: Any) -> Any:
    if type(value) in (int, str) or (type(value) is float and isfinite(value)):
        return value
    raise ValueError("a number or text")


RECODES = ("missing", "top_code", "bottom_code", "round_to", "bands", "hierarchy", "level")
Code = Annotated[str | int | float, BeforeValidator(_code)]
Count = Annotated[int, Field(le=LARGEST_COUNT)]
Whole = Annotated[int, Field(ge=0, le=LARGEST_COUNT)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Bound = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Text = Annotated[str, Field(min_length=1)]
PathText = Annotated[Text, BeforeValidator(_without_nul)]
SafeName = Annotated[str, Field(pattern=NAME_PATTERN)]
ByDimension = Annotated[dict[int, Bound], BeforeValidator(_dimension_keys)]
AutoOrCount = Annotated[Literal["auto"] | int, BeforeValidator(_auto_or_count)]
Names = Annotated[tuple[Text, ...], Field(strict=False)]


class Section(BaseModel):
    """A table of the TOML: no unknown key, no silent conversion, no change after reading."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)


class Release(Section):
    """`[release]`: what is released, and how safe it is to be."""

    name: SafeName
    """Name of the release in the ledger: letters, digits, "_", "." and "-"."""
    k: Count = Field(ge=2)
    """Least number of units that share a combination of quasi-identifiers (and the region)."""
    seed: int = Field(default=0, ge=0, lt=2**63)
    """Seed of the run; nothing is safe only because it is unknown."""
    source: SafeName | None = None
    """The units behind the release, such as a register; by default the release's name."""
    period: Text | None = None
    """Part of the identity of a release in a series, such as "2026-11"."""


class Input(Section):
    """`[input]`: where the microdata are and how they are written."""

    path: PathText
    """File, directory or glob; anything Spark reads. Relative to the specification."""
    format: Literal["parquet", "csv"] = "parquet"
    """File format."""
    missing: str | None = None
    """A further missing-value mark in text columns, besides the empty field."""
    delimiter: str = Field(default=",", min_length=1, max_length=1)
    """CSV: the character between two fields."""
    encoding: Text = "utf-8"
    """CSV: character encoding."""
    columns: Names = ()
    """CSV: names of the fields, where the file has no header line."""
    metadata: PathText | None = None
    """tau-ARGUS metadata (`.rda`) of a finished table in CSV without header line (`.tab`), for `adjust`: they
    fill `columns`, `delimiter`, `[variables]` and `[table]`, hierarchies (`.hrc`) included, where the
    specification does not say otherwise. Relative to the specification."""
    decimal: Literal[".", ","] = "."
    """CSV: decimal mark."""
    thousands: Literal[".", ",", " ", "'"] | None = None
    """CSV: mark between thousands in numbers (" " is any blank); without it such numbers are rejected."""
    unmentioned: Literal["fail", "drop"] = "fail"
    """Columns of the file that the specification does not name."""
    expectations: PathText | None = None
    """An agency's own Great Expectations suite, as 1.x saves it (JSON): a further gate on the original input,
    before any recode; missing codes are missing, identifiers are not there. Relative to the specification."""


class Variable(Section):
    """One line of `[variables]`: role and kind, and how it is recoded before anything is counted."""

    role: Role
    """What the variable is to the release."""
    kind: Kind | None = None
    """Categories (nominal), with an order (ordinal) or levels (hierarchical), or magnitudes (numeric); a
    quasi-identifier must say which."""
    order: Names | None = None
    """Ordinal: its categories as they are published, lowest first; bands bring their own. The two ends are as
    far apart as two nominal values, steps between them a part of it; other values reject their record.
    Without numeric variables counts of combinations are protected, and records carried to the nearest of
    them by these distances. Clusters publish a category of one of their records: the one chosen for the
    control tables (`auto`), or the lower median (where nominal ones get the mode)."""
    missing: Annotated[tuple[Code, ...], Field(strict=False)] = ()
    """Codes that stand for a missing value, such as [97, 99], besides empty fields and `input.missing`."""
    top_code: Number | None = None
    """Larger values are published as this one."""
    bottom_code: Number | None = None
    """Smaller values are published as this one."""
    round_to: Annotated[Number, Field(gt=0)] | None = None
    """Values are rounded to multiples of this, half to even."""
    bands: Annotated[tuple[Number, ...], Field(strict=False)] | None = None
    """Lower limits of bands, ascending, such as [0, 18, 65]: a number becomes the category of its band."""
    hierarchy: PathText | None = None
    """CSV with a header and one column per level of the code, finest first. Relative to the specification.
    Hierarchical: two values are as far apart as two nominal ones where no level from the published one on is
    alike, else the share of levels below their common ancestor. Protected and published as ordinal ones are,
    the category nearest to all others in place of the median."""
    level: int | None = Field(default=None, ge=1, le=LARGEST_DIMENSION)
    """Column of the hierarchy that is published, 1 the finest (the codes of the file, and the default of a
    hierarchical variable)."""
    variable_weight: Annotated[Number, Field(gt=0, le=LARGEST_WEIGHT)] = 1.0
    """Multiplies the squared distance in this quasi-identifier where records are clustered, or carried to
    protected combinations, so that what weighs more changes less; losses in the evidence are not weighted.
    Combinations weigh in whole sixtieths of the lightest variable."""

    @property
    def recodes(self) -> dict[str, Any]:
        """The keys that change values before anything is counted, as far as they are given."""
        given = {name: getattr(self, name) for name in RECODES}
        return {name: value for name, value in given.items() if value is not None and value != ()}


class ControlTables(Section):
    """`[method.control_tables]`: the tables of the nominal quasi-identifiers that protection is to spare."""

    max_dimension: int | None = Field(default=None, ge=1, le=LARGEST_DIMENSION)
    """All tables up to this dimension (default 2); not together with `tables`."""
    tables: Annotated[tuple[Names, ...], Field(strict=False)] | None = None
    """The tables by name, such as [["sex", "age_group"], ["region", "sex"]]; not with `max_dimension`."""
    region_dimension: int = Field(default=1, ge=0, le=LARGEST_DIMENSION)
    """Region times every table of up to so many variables; 0 is none. Nothing where there is no region."""
    max_absolute_error: ByDimension | None = None
    """What the search is to respect: largest change of a cell, by dimension of the table."""


class TwoStep(Section):
    """`[method.two_step]`: how the integer partition of an own-... algorithm is guided (Cost 2023, 4.4)."""

    gamma: Share
    """Weight of the duals of the fractional partition."""
    reward: Annotated[Number, Field(gt=0)]
    """lambda: reward of each member of a cluster, so that clusters grow."""


class ChiExact(Section):
    """`[method.chi_exact]`: the second term of the objective of chi-exact (Cost 2023, (5.6.1))."""

    deviation_weight: Bound = 0.0
    """w: cost of each record by which a combination changes, in units of chi-square; it stands for the tables
    that are not controlled."""


class Safe(Section):
    """`[method.safe]`: parameters of SAFE (Cost 2023, Appendix A); those left out are the German census's."""

    allowed_bound_one_dimension: Whole | None = None
    """Bound on the absolute error of a cell of one variable with which the elimination starts (2)."""
    allowed_bound_higher_dimension: Whole | None = None
    """The same of more variables (3)."""
    max_gap_between_bounds: Whole | None = None
    """Largest difference between the two when they are raised (3)."""
    allowed_deviation: Annotated[Count, Field(ge=2)] | None = None
    """Largest change of a combination at k = 3; other k take k - 3 more (3)."""
    first_part: Annotated[Count, Field(ge=1)] | None = None
    """Combinations in the first part of the vector (5000)."""
    part: Annotated[Count, Field(ge=1)] | None = None
    """Combinations in each part added to it (500)."""
    slice: Annotated[int, Field(ge=2, le=4)] | None = None
    """Combinations that are changed together (3)."""
    stagnation: Annotated[Number, Field(ge=0, lt=1)] | None = None
    """Share of the problems below which a pass has eliminated too few (0.02)."""
    target_bound_one_dimension: Whole | None = None
    """Bound on the error of a cell of one variable that the improvement aims at (2)."""
    target_bound_higher_dimension: Whole | None = None
    """The same of more variables (3)."""
    max_improvements: Whole | None = None
    """Passes of the improvement (20)."""
    extra_error_from: Annotated[tuple[Whole, ...], Field(strict=False)] | None = None
    """Increasing original counts; a cell may err by one more for each that it reaches (10, 20, 50, 100, 200,
    1000, ... 1000000)."""
    max_exceedings: Whole | None = None
    """Cells that a lowered bound may leave above it before bounds stop falling (50)."""
    max_total_exceedings: Whole | None = None
    """The same before the improvement ends (5000)."""
    max_nodes: Annotated[Count, Field(ge=1)] | None = None
    """Branch-and-bound nodes of safe-exact and modified-safe-exact (no limit)."""

    @property
    def given(self) -> dict[str, Any]:
        """The parameters as far as they are given."""
        return {name: getattr(self, name) for name in sorted(self.model_fields_set)}


class Method(Section):
    """`[method]`: how the quasi-identifiers are protected."""

    name: MethodName = "microaggregation"
    """Microaggregation (cluster and replace) or SAFE (nominal only)."""
    effort: Effort = "standard"
    """How much work a block is worth. "exact" proves, or states the gap: it is refused for algorithms whose
    work depends on no effort."""
    algorithm: Text = "auto"
    """"auto", or any name of the method's table."""
    representative: Representative = "auto"
    """What is published for a cluster."""
    unit: Unit = "record"
    """What k counts: records, households or units; each combination is shared by at least k of them, and what
    is counted may repeat."""
    min_diversity: Count = Field(default=1, ge=1)
    """Distinct values of each sensitive variable in every cluster."""
    control_tables: ControlTables = ControlTables()
    """The tables protection is to spare."""
    two_step: TwoStep | None = None
    """Of an own-... algorithm; by default the pair of Table 6.5 whose scenario is nearest."""
    chi_exact: ChiExact = ChiExact()
    """Of chi-exact."""
    safe: Safe = Safe()
    """Of SAFE."""


class Blocking(Section):
    """`[blocking]`: how records are cut into units that are solved together."""

    max_records: AutoOrCount = "auto"
    """Most records of a block; "auto" by effort."""
    small_regions: Literal["fail", "suppress"] = "fail"
    """What becomes of a region with fewer than k records."""


class Missing(Section):
    """`[missing]`: what missing values of the quasi-identifiers mean."""

    nominal: Literal["category", "reject"] = "category"
    """Missing is one more category, or the record is rejected."""
    numeric: Literal["reject", "own_cluster"] = "reject"
    """The record is rejected, or clustered with those of its missing pattern."""
    max_rejected: Count = Field(default=0, ge=0)
    """Records; more than this stops the run."""


class Dominance(Section):
    """`quality.dominance`: the (n, k) rule."""

    n: Count = Field(ge=1)
    """Largest contributors counted together."""
    k: float = Field(gt=0, le=100, allow_inf_nan=False)
    """Percent of a cluster's total they may not exceed."""


class Quality(Section):
    """`[quality]`: the gate. The three limits on disclosure hold by default; the others where given."""

    max_information_loss: Share | None = None
    """SSE/SST over the numeric quasi-identifiers."""
    max_chi2_per_cell: Bound | None = None
    """Chi-square over the cells of the control tables, divided by their number."""
    max_absolute_error: ByDimension | None = None
    """Largest change of a cell, by dimension of the table, that the gate lets pass."""
    max_unique_published: Share = 0.01
    """Share of records unique on the protected variables joined with any one column published as it is.

    Sensitive variables are not joined: who knows them has nothing left to learn.
    """
    max_unique_jointly: Share = 0.05
    """The same, joined with all columns published as they are."""
    max_homogeneous: Share = 0.05
    """Share of records in classes with one value of a sensitive variable."""
    min_entropy_diversity: Annotated[Number, Field(ge=1)] | None = None
    """Least exp(entropy) of a sensitive variable in a class."""
    max_t: Share | None = None
    """Largest distance of a sensitive variable's distribution in a class from that of the whole file."""
    accept: dict[Text, Text] = Field(default={})
    """A steward's exemption from a limit that holds by default: its name = the reason, and by whom."""
    dominance: Dominance | None = None
    """Clusters whose largest contributors dominate a numeric total."""

    def default_limit(self, name: str) -> float | None:
        """A limit that holds by default; None where a steward accepted what is beyond it."""
        return None if name in self.accept else float(getattr(self, name))


class Publish(Section):
    """`[publish]`: where the release and the evidence go."""

    path: PathText
    """Public area: a folder, relative to the specification, or an object store (`s3://bucket/place`, `gs://`,
    `abfss://`) whose credentials and endpoint stand in the environment."""
    evidence: PathText
    """Agency only; not inside the public area. Relative to the specification."""
    format: Literal["parquet", "delta", "iceberg"] = "parquet"
    """Table format of the release."""
    accept_dependencies: Names = ()
    """Columns published as they are although they determine a protected nominal variable."""
    successive: Literal["refuse", "accept"] = "refuse"
    """A second release under this name from another input, k, seed or specification."""
    series: Literal["single", "append", "register"] = "single"
    """Whether releases under this name follow each other, and how."""
    changes: Literal["keep", "republish"] = "keep"
    """What becomes of published records whose values changed since."""
    approval: Literal["none", "required"] = "none"
    """Whether somebody must sign a release before it is published."""
    keep: Annotated[Count, Field(ge=1)] | None = None
    """How many releases of this name stand, the newest among them: older ones are withdrawn once another is
    published. Copies of them stay known to the ledger and the audit."""
    ledger: PathText | None = None
    """Folder that several evidence areas share, so that each finds the records it is given again among those
    that the others published. Relative to the specification."""
    disclose: Annotated[tuple[Disclosable, ...], Field(strict=False)] = ()
    """Whole-file measures against the original that a steward allows to be public."""


class Series(Section):
    """`[series]`: what a series of releases keeps to; above a share the night is refused until a rebase."""

    pool: Annotated[Count, Field(ge=2)] | None = None
    """Units a stratum waits for before new ones are published (default 2k)."""
    max_waiting: Share | None = None
    """Units that wait."""
    max_ghosts: Share | None = None
    """Published units that have left the source."""
    max_stale: Share | None = None
    """Published units whose values have changed since."""


class Group(Section):
    """One `[[groups]]`: quasi-identifiers protected together, independently of the other groups."""

    name: SafeName
    """Name in manifest and evidence."""
    variables: Names = Field(min_length=1)
    """Names of quasi-identifiers."""
