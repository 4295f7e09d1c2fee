"""Sections of a release specification: frozen models with the same structure as its TOML."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from microguard.schemas.method_registry import BUILT_IN, MethodRow
from microguard.schemas.methods import Representative, Unit
from microguard.schemas.roles import Disclosable, Kind, Role
from microguard.schemas.specification.parameters import AlgorithmSections, method_parameters
from microguard.schemas.specification.section import (
    LARGEST_DIMENSION,
    LARGEST_WEIGHT,
    Acceptable,
    AutoOrCount,
    Bound,
    ByDimension,
    CatalogName,
    Code,
    Count,
    InputPath,
    Names,
    Number,
    OneOfOrText,
    PathText,
    SafeName,
    Section,
    Share,
    TableName,
    Text,
    Timestamp,
)
from microguard.sdc.algorithms.algorithm import Effort
from microguard.sdc.algorithms.parameters import Parameters
from pydantic import Field

MethodName = Annotated[
    Text, OneOfOrText(*(name for name, row in BUILT_IN.items() if row.content == "records"))
]
RECODES = ("date", "missing", "top_code", "bottom_code", "round_to", "bands", "hierarchy", "level")


class Release(Section):
    """`[release]`: the identity of the release and its level of protection."""

    name: SafeName
    """Name of the release in the ledger: letters, digits, "_", "." and "-"."""
    k: Count = Field(ge=2)
    """Minimum number of units that share a combination of quasi-identifiers (and the region)."""
    seed: int = Field(default=0, ge=0, lt=2**63)
    """Seed of the run; the protection does not depend on its secrecy."""
    source: SafeName | None = None
    """Name of the set of units behind the release, such as a register; by default the release's name."""
    period: Text | None = None
    """Period of the release, such as "2026-11"; it is a part of the identity of a release in a series."""


Position = Annotated[
    tuple[Annotated[Count, Field(ge=1)], ...], Field(strict=False, min_length=2, max_length=2)
]
"""Number of the first character of a field, and its number of characters."""


class Input(Section):
    """`[input]`: the location and the format of the microdata."""

    path: InputPath = ""
    """File, directory or glob that Spark can read, relative to the specification. A Delta or Iceberg table,
    named by its folder or by the metadata file of an Iceberg table, is read as its current snapshot. Required
    unless `table` is given."""
    table: Text | None = None
    """Name of a table, instead of a path: a table of `catalog` (`statistics.persons`) or, without `catalog`,
    a table of Spark's own catalogue (`db.persons`, or `catalog.db.persons`). It is read once, as one
    snapshot."""
    catalog: CatalogName | None = None
    """Catalogue of Iceberg tables that contains `table`: an address or a name, as in `publish.catalog`."""
    version: int | None = Field(default=None, ge=0)
    """Version of a Delta table, or snapshot id of an Iceberg table; by default the current one."""
    timestamp: Timestamp | None = None
    """Time whose snapshot of a Delta or Iceberg table is read, such as "2026-11-01T06:00:00+01:00" (without
    an offset: UTC); not together with `version`."""
    format: Literal["parquet", "csv"] = "parquet"
    """File format. By default, files with a text suffix (.csv, .tsv, .txt), and files that begin with text,
    are CSV; all others are Parquet."""
    missing: str | None = None
    """An additional missing-value mark in text columns, besides the empty field."""
    delimiter: str = Field(default=",", min_length=1, max_length=1)
    """CSV: the character between two fields."""
    quote: Literal['"', "'"] = '"'
    """CSV: quotation mark around fields that contain the delimiter."""
    encoding: Text = "utf-8"
    """CSV: character encoding, by its name in Java, Python or IANA."""
    columns: Names = ()
    """CSV: names of the fields, if the file has no header line."""
    positions: dict[Text, Position] = Field(default={})
    """Text with fields at fixed positions, without delimiter and header line: for each field name, its first
    character, counted from 1, and its number of characters, such as `[15, 4]`. Blanks around a value are
    ignored."""
    metadata: PathText | None = None
    """tau-ARGUS metadata (`.rda`) for `adjust`. The input is a finished table in CSV without header line
    (`.tab`), or microdata at fixed positions (`.asc`) or with a delimiter. The metadata fill `columns` or
    `positions`, `delimiter`, `[variables]` and `[table]`, including hierarchies (`.hrc`); keys given in the
    specification have precedence. Relative to the specification."""
    decimal: Literal[".", ","] = "."
    """CSV: decimal mark."""
    thousands: Literal[".", ",", " ", "'"] | None = None
    """CSV: separator between thousands in numbers (" " stands for any blank); without this key such numbers
    are rejected."""
    unmentioned: Literal["fail", "drop"] = "fail"
    """Treatment of columns of the file that the specification does not declare."""
    expectations: PathText | None = None
    """An agency's own Great Expectations suite, saved by version 1.x (JSON). It is an additional gate on the
    original input before any recode; missing codes count as missing, and identifiers are not available.
    Relative to the specification."""


class Variable(Section):
    """One line of `[variables]`: the role, the kind and the recodes of a variable."""

    role: Role
    """Role of the variable in the release."""
    kind: Kind | None = None
    """Kind of the values: categories (nominal), categories with an order (ordinal) or with levels
    (hierarchical), or magnitudes (numeric). Required for a quasi-identifier. Other variables that contain
    numbers are numeric unless declared nominal."""
    order: Names | None = None
    """Ordinal: the categories as published, lowest first; bands define their own order. The distance of the
    two ends equals that of two nominal values, and each step is an equal part of it; a record with another
    value is rejected. Without numeric variables, counts of combinations are protected, and records are
    assigned to the nearest protected combination by these distances. A cluster publishes a category of one of
    its records: the one chosen for the control tables (`auto`), or the lower median (nominal variables: the
    mode)."""
    date: Literal["year"] | None = None
    """Dates, as date values or as text with a year of four digits (2001-02-03, 03.02.2001, 20010203), are
    replaced by the year, a whole number, before any other recode."""
    missing: Annotated[tuple[Code, ...], Field(strict=False)] = ()
    """Codes that represent a missing value, such as [97, 99], besides empty fields and `input.missing`."""
    top_code: Number | None = None
    """Larger values are replaced by this one (top coding)."""
    bottom_code: Number | None = None
    """Smaller values are replaced by this one (bottom coding)."""
    round_to: Annotated[Number, Field(gt=0)] | None = None
    """Values are rounded to multiples of this number, half to even."""
    bands: Annotated[tuple[Number, ...], Field(strict=False)] | None = None
    """Lower limits of bands, ascending, such as [0, 18, 65]: each number is replaced by the category of its
    band."""
    hierarchy: PathText | None = None
    """CSV with a header and one column per level of the code, finest first, relative to the specification.
    Hierarchical: the distance of two values is the share of levels below their common ancestor, counted from
    the published level on. It equals that of two nominal values if no level agrees. Protected and published
    like ordinal variables; the category with the least total distance replaces the median."""
    level: int | None = Field(default=None, ge=1, le=LARGEST_DIMENSION)
    """Column of the hierarchy that is published; 1 is the finest (the codes of the file, and the default of a
    hierarchical variable)."""
    costs: PathText | None = None
    """Nominal quasi-identifiers: a CSV with a header of the categories and one line for each category, with
    the cost of publishing each category in place of another. The matrix is symmetric, 0 on the diagonal and
    above 0 elsewhere. The largest cost is the distance of two values without such a file, and also that of a
    missing value; a record with another value is rejected. Clusters of records require points: if a matrix
    cannot be represented by points, the least constant that makes this possible is added to every mismatch.
    Protected and published like hierarchical variables. Relative to the specification."""
    variable_weight: Annotated[Number, Field(gt=0, le=LARGEST_WEIGHT)] = 1.0
    """Factor of the squared distance in this quasi-identifier, for clustering records and for assigning them
    to protected combinations. A variable with a larger weight changes less; losses in the evidence are not
    weighted. For combinations, weights are rounded to sixtieths of the smallest weight."""

    @property
    def recodes(self) -> dict[str, Any]:
        """Return the given keys that change values before anything is counted."""
        given = {name: getattr(self, name) for name in RECODES}
        return {name: value for name, value in given.items() if value is not None and value != ()}


class ControlTables(Section):
    """`[method.control_tables]`: tables of the nominal quasi-identifiers whose errors are kept small."""

    max_dimension: int | None = Field(default=None, ge=1, le=LARGEST_DIMENSION)
    """All tables up to this dimension (default 2); not together with `tables`."""
    tables: Annotated[tuple[Names, ...], Field(strict=False)] | None = None
    """The tables by their variables, such as [["sex", "age_group"], ["region", "sex"]]; not together with
    `max_dimension`."""
    region_dimension: int = Field(default=1, ge=0, le=LARGEST_DIMENSION)
    """Maximum number of variables of the tables that are also controlled by region; 0 means none. It has no
    effect without a region."""
    max_absolute_error: ByDimension | None = None
    """Largest change of a cell that the search aims at, by dimension of the table."""
    kept_dimension: int = Field(default=0, ge=0, le=LARGEST_DIMENSION)
    """Maximum number of variables (without the region) of control tables whose cells with at least k records
    should not become empty: 1 preserves categories, nationally and by region; 0 means none. This has priority
    over small errors; `quality.max_vanished` limits the cells that become empty in spite of it. Refused for
    clusterings of more than 500,000 records, whose modes are chosen separately."""


class Population(Section):
    """`[population]`: the numbers of units or records of the population by combination, for k-map."""

    path: PathText
    """File of counts, with one line for each combination; its values are written and recoded like those of
    the input. Relative to the specification."""
    count: Text
    """Column of the file with the number of people (households, units). Lines of the same combination are
    added up."""
    variables: Names | None = None
    """The region and nominal quasi-identifiers by which the file counts; by default all of them. Counts are
    summed over the other columns of the file."""
    format: Literal["parquet", "csv"] = "parquet"
    """File format."""
    delimiter: str = Field(default=",", min_length=1, max_length=1)
    """CSV: the character between two fields."""
    encoding: Text = "utf-8"
    """CSV: character encoding, by its name in Java, Python or IANA."""


class Method(AlgorithmSections):
    """`[method]`: the protection of the quasi-identifiers."""

    name: MethodName = "microaggregation"
    """Microaggregation (cluster and replace), SAFE (nominal only), local_suppression (single values become
    missing), recoding (one level of its hierarchy for each variable), a perturbation (all other methods; no
    formal promise), or an installed third-party method."""
    parameters: dict[Text, Any] = Field(default={})
    """Parameters of local suppression, recoding or a perturbation (see below), or of a third-party method."""
    effort: Effort = "standard"
    """Amount of work for each block. "exact" proves optimality or states the gap; it is refused for
    algorithms whose work does not depend on the effort."""
    algorithm: Text = "auto"
    """"auto", or any name in the method's table."""
    representative: Representative = "auto"
    """What is published for a cluster."""
    unit: Unit = "record"
    """The entities that k counts: records, households or units. Each combination is shared by at least k of
    them; a household or unit may have several records. The records of one unit have at most a share of 2/k,
    and at most two thirds, in the values that a cluster publishes: clusters are merged, and if that does not
    suffice, these records get a smaller weight."""
    min_diversity: Count = Field(default=1, ge=1)
    """Minimum number of distinct values of each sensitive variable in every cluster; an input with fewer in a
    region is rejected. Numbers within 1 % of each other and of their range in the file count as one value,
    and so do spellings of a text ("HIV", "hiv", " HIV"); missing values are not counted. Clusters are
    searched on perturbed values, so that they do not disclose sensitive values to an attacker who knows the
    method; this increases the loss by a tenth to a third."""
    weight: Text | None = None
    """The variable of role weight by which means, modes, losses and risks are weighted. Required if there are
    several weights; all of them are published and measured."""
    weighted: bool = True
    """Whether clusters and their published values use the weight. If true, means preserve weighted totals. k,
    control tables and counts of combinations do not use it. No record has more than a share of 2/k, or of two
    thirds, of its cluster's weight: clusters are merged, and if that does not suffice, the weight is trimmed.
    If false, only tables and measures use the weight, and means preserve unweighted totals."""
    control_tables: ControlTables = ControlTables()
    """The tables protection is to spare."""

    def method_parameters(self, row: MethodRow) -> Parameters | None:
        """Return the parameters of the method, as its row declares them."""
        return method_parameters(row, self.parameters)


class Blocking(Section):
    """`[blocking]`: the division of the records into blocks that are solved separately."""

    max_records: AutoOrCount = "auto"
    """Maximum number of records of a block; "auto" depends on the effort. A larger block is divided again,
    unless a half would have too few units or sensitive values for a cluster."""
    small_regions: Literal["fail", "suppress"] = "fail"
    """Treatment of a region with fewer than k records."""


class Missing(Section):
    """`[missing]`: the treatment of missing values of the quasi-identifiers."""

    nominal: Literal["category", "reject"] = "category"
    """A missing value is an additional category, or its record is rejected."""
    numeric: Literal["reject", "own_cluster"] = "reject"
    """The record is rejected, or clustered with the records that have the same missing pattern."""
    max_rejected: Count = Field(default=0, ge=0)
    """Maximum number of rejected records; with more, the run is refused."""


class Dominance(Section):
    """`quality.dominance`: the (n, k) rule."""

    n: Count = Field(ge=1)
    """Largest contributors counted together."""
    k: float = Field(gt=0, le=100, allow_inf_nan=False)
    """Maximum share of the n largest contributors in a cluster's total, in percent."""


class Quality(Acceptable):
    """`[quality]`: the limits of the gate; four limits on disclosure apply by default."""

    max_information_loss: Share | None = None
    """SSE/SST over the numeric quasi-identifiers."""
    max_chi2_per_cell: Bound | None = None
    """Chi-square over the cells of the control tables, divided by their number."""
    max_absolute_error: ByDimension | None = None
    """Maximum change of a cell that the gate accepts, by dimension of the table."""
    max_vanished: ByDimension | None = None
    """Maximum number of cells with at least k records before protection that are empty now, by dimension of
    the table; cells of tables by region are counted separately."""
    max_unique_published: Share = 0.01
    """Maximum share of records that are unique on the protected variables joined with any one column
    published unmodified.

    A sensitive variable is joined where most of its values are numbers, dates or times, and there is another
    sensitive variable to learn. It is also the limit of records with a text of their own in a sensitive
    variable, if nine in ten of its texts (all, of 10 to 18) belong to one unit, as e-mail addresses do.
    """
    max_unique_jointly: Share = 0.05
    """The same share, joined with all columns published unmodified; with groups, also with the variables of
    all groups."""
    max_homogeneous: Share = 0.05
    """Maximum share of records in classes with one value of a sensitive variable, or only missing values."""
    max_of_one_value: Share | None = None
    """Maximum share of records in clusters with one value of a numeric quasi-identifier, which is then their
    mean."""
    min_entropy_diversity: Annotated[Number, Field(ge=1)] | None = None
    """Minimum exp(entropy) of a sensitive variable in a class."""
    max_t: Share | None = None
    """Maximum distance between a sensitive variable's distribution in a class and that in the whole file."""
    max_below_k_in_population: Share | None = None
    """Maximum share of records whose combination fewer than k of the `[population]` have, including
    combinations that do not occur in it (k-map)."""
    accept: dict[Text, Text] = Field(default={})
    """Exemptions by a steward from limits that apply by default: for each limit name, the reason and the
    person. A limit that is set to a looser value applies with this value, and the reason is given for it."""
    dominance: Dominance | None = None
    """Clusters whose largest contributors dominate a numeric total."""


class Publish(Section):
    """`[publish]`: the locations of the release and the evidence."""

    path: PathText
    """Public area: a folder, relative to the specification, or an object store (`s3://bucket/place`, `gs://`,
    `abfss://`) whose credentials and endpoint are set in the environment."""
    evidence: PathText
    """Evidence area, for the agency only: a folder or an object store outside the public area. Relative to
    the specification."""
    format: Literal["parquet", "delta", "iceberg"] = "parquet"
    """Table format of the release. In an object store, "iceberg" requires a catalogue."""
    catalog: CatalogName | None = None
    """A catalogue of Iceberg tables in which every release is a snapshot of `table`, with a tag equal to its
    id. It is given as an address (`https://`, `sqlite:///lake/catalog.db`, `postgresql+psycopg2://`,
    `thrift://`), or as a name in pyiceberg's configuration. Credentials are set in that configuration or in
    the environment. Requires `format` = "iceberg"; the metadata of the table are written to the public area,
    and no snapshot of a withdrawn release remains."""
    table: TableName | None = None
    """The table in the catalogue with its namespace, such as "statistics.persons"."""
    partition_by: Text | None = None
    """The variable of role region. The records of each region are written to a separate folder,
    `microdata/region=value/`, as Hive, Spark, DuckDB, pandas, pyarrow and Polars read it. Its values must be
    text or whole numbers; values that a reader would misread (text 007 as 7) are refused. Not for a table
    format, which has files of its own."""
    csv: bool = False
    """Whether the records are also published as CSV next to the Parquet files: `microdata.csv`, with the same
    records in the same order."""
    accept_dependencies: Names = ()
    """Columns published unmodified although they (nearly) determine a protected variable. A column nearly
    determines it if it removes 19 of 20 errors of guessing the most frequent value. For sums, products and
    interpolation between neighbouring values, a guess within 1 % counts as right."""
    successive: Literal["refuse", "accept"] = "refuse"
    """A second release under this name from another input, k, seed or specification."""
    series: Literal["single", "append", "register"] = "single"
    """Whether and how the releases of this name form a series."""
    changes: Literal["keep", "republish"] = "keep"
    """Treatment of published records whose values have changed since."""
    approval: Literal["none", "required"] = "none"
    """Whether a person must approve a release before it is published."""
    keep: Annotated[Count, Field(ge=1)] | None = None
    """Number of releases of this name that remain published, including the newest: older ones are withdrawn
    after the next one is published. The ledger and the audit continue to count their copies as known."""
    ledger: PathText | None = None
    """Folder or object store of a ledger that several evidence areas share, by which each recognises records
    that the others have already published. Relative to the specification."""
    disclose: Annotated[tuple[Disclosable, ...], Field(strict=False)] = ()
    """Measures of the whole file, compared with the original, that a steward allows to be public; numbers of
    records are rounded to multiples of k."""


class Series(Section):
    """`[series]`: limits of a series; an update that exceeds one of the shares requires a rebase."""

    pool: Annotated[Count, Field(ge=2)] | None = None
    """Number of pending units of a stratum from which new ones are published (default 2k)."""
    max_waiting: Share | None = None
    """Units that wait."""
    max_ghosts: Share | None = None
    """Maximum share of published units that have left the source."""
    max_stale: Share | None = None
    """Maximum share of published units whose values have changed since."""


class Group(Section):
    """One `[[groups]]`: quasi-identifiers that are protected together, independently of the other groups."""

    name: SafeName
    """Name in manifest and evidence."""
    variables: Names = Field(min_length=1)
    """Names of quasi-identifiers."""
