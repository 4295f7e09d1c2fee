"""The sections of a release specification: frozen models that mirror its TOML one to one."""

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


Position = Annotated[
    tuple[Annotated[Count, Field(ge=1)], ...], Field(strict=False, min_length=2, max_length=2)
]
"""First character of a field, and its number of characters."""


class Input(Section):
    """`[input]`: where the microdata are and how they are written."""

    path: InputPath = ""
    """File, directory or glob; anything Spark reads. Relative to the specification. The folder of a Delta or
    Iceberg table, or the metadata file of an Iceberg table, is read as its snapshot. Needed unless `table` is
    given."""
    table: Text | None = None
    """A table by name instead of a path: of the catalogue (`statistics.persons`), without one of Spark's own
    (`db.persons`, or `catalog.db.persons`). It is read once, as one snapshot."""
    catalog: CatalogName | None = None
    """The catalogue of Iceberg tables that has `table`: an address or a name, as in `publish.catalog`."""
    version: int | None = Field(default=None, ge=0)
    """Version of a Delta table, or snapshot id of an Iceberg table; by default the current one."""
    timestamp: Timestamp | None = None
    """The snapshot of a Delta or Iceberg table at this time, such as "2026-11-01T06:00:00+01:00" (without an
    offset: UTC); not together with `version`."""
    format: Literal["parquet", "csv"] = "parquet"
    """File format; without it, a suffix of text (.csv, .tsv, .txt) or a file that begins with text is CSV."""
    missing: str | None = None
    """A further missing-value mark in text columns, besides the empty field."""
    delimiter: str = Field(default=",", min_length=1, max_length=1)
    """CSV: the character between two fields."""
    quote: Literal['"', "'"] = '"'
    """CSV: the mark around fields that hold the delimiter."""
    encoding: Text = "utf-8"
    """CSV: character encoding, by a name of Java, Python or IANA."""
    columns: Names = ()
    """CSV: names of the fields, where the file has no header line."""
    positions: dict[Text, Position] = Field(default={})
    """Text with fields at fixed places, without delimiter and header line: name of each field -> its first
    character, counted from 1, and its number of characters, such as `[15, 4]`. Blanks around it are none of
    it."""
    metadata: PathText | None = None
    """tau-ARGUS metadata (`.rda`) for `adjust`, of a finished table in CSV without header line (`.tab`) or of
    microdata, at fixed places (`.asc`) or with a delimiter: they fill `columns` or `positions`, `delimiter`,
    `[variables]` and `[table]`, hierarchies (`.hrc`) included, where the specification does not say
    otherwise. Relative to the specification."""
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
    quasi-identifier must say which. Other numbers are magnitudes unless they are said to be nominal."""
    order: Names | None = None
    """Ordinal: its categories as they are published, lowest first; bands bring their own. The two ends are as
    far apart as two nominal values, steps between them a part of it; other values reject their record.
    Without numeric variables counts of combinations are protected, and records carried to the nearest of
    them by these distances. Clusters publish a category of one of their records: the one chosen for the
    control tables (`auto`), or the lower median (where nominal ones get the mode)."""
    date: Literal["year"] | None = None
    """Dates, as such or as text with a year of four digits (2001-02-03, 03.02.2001, 20010203), become the
    year, a whole number, before any other recode."""
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
    costs: PathText | None = None
    """Nominal quasi-identifiers: a CSV with a header of the categories and a line for each, of what it costs
    to publish one for another: symmetric, 0 on the diagonal, above 0 elsewhere. The dearest is as far as two
    values without such a file, and so is a missing value; other values reject their record. Clusters of
    records need points: where a matrix has none, the least constant that gives it some is added to every
    mismatch. Protected and published as hierarchical ones are. Relative to the specification."""
    variable_weight: Annotated[Number, Field(gt=0, le=LARGEST_WEIGHT)] = 1.0
    """Multiplies the squared distance in this quasi-identifier where records are clustered, or carried to
    protected combinations, so that what weighs more changes less; losses in the evidence are not weighted.
    Combinations weigh in whole sixtieths of the lightest variable."""

    @property
    def recodes(self) -> dict[str, Any]:
        """Keys that change values before anything is counted, if they are given."""
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
    kept_dimension: int = Field(default=0, ge=0, le=LARGEST_DIMENSION)
    """Cells that k records or more hold, of control tables of up to so many variables (the region is none),
    are not emptied where that can be: 1 keeps categories, nationally and by region; 0 none. It goes before
    small errors; `quality.max_vanished` limits what is lost all the same. Clusters of more than 500,000
    records, whose modes are taken one by one, refuse it."""


class Population(Section):
    """`[population]`: for each combination, how many units (or records) the population has; for k-map."""

    path: PathText
    """File of counts, one line a combination; values are written, and then recoded, as those of the input.
    Relative to the specification."""
    count: Text
    """Its column with the number of people (households, units). Lines of one combination are added up."""
    variables: Names | None = None
    """The region and nominal quasi-identifiers that it counts by: all of them, unless fewer are named. It is
    summed over its further columns."""
    format: Literal["parquet", "csv"] = "parquet"
    """File format."""
    delimiter: str = Field(default=",", min_length=1, max_length=1)
    """CSV: the character between two fields."""
    encoding: Text = "utf-8"
    """CSV: character encoding, by a name of Java, Python or IANA."""


class Method(AlgorithmSections):
    """`[method]`: how the quasi-identifiers are protected."""

    name: MethodName = "microaggregation"
    """Microaggregation (cluster and replace), SAFE (nominal only), local_suppression (single values become
    missing), recoding (one level of its hierarchy for each variable), a perturbation (all others; no formal
    promise), or an installed method of a third party."""
    parameters: dict[Text, Any] = Field(default={})
    """Parameters of local suppression, recoding or a perturbation (see below), or of a method of a third
    party."""
    effort: Effort = "standard"
    """How much work a block is worth. "exact" proves, or states the gap: it is refused for algorithms whose
    work depends on no effort."""
    algorithm: Text = "auto"
    """"auto", or any name of the method's table."""
    representative: Representative = "auto"
    """What is published for a cluster."""
    unit: Unit = "record"
    """What k counts: records, households or units; each combination is shared by at least k of them, and what
    is counted may repeat. The records of one count for no more than 2/k of a cluster, nor two thirds, in what
    it publishes: clusters are merged, and where that does not help, they count for less than the others."""
    min_diversity: Count = Field(default=1, ge=1)
    """Distinct values of each sensitive variable in every cluster; an input with fewer in a region is
    rejected. Numbers within 1 % of each other, and of the range they have in the file, count as one, as do
    spellings of a text ("HIV", "hiv", " HIV"); what is missing is no value. Clusters are searched on blurred
    values, so that to whoever knows the method they do not tell whose value is which; that costs a tenth to a
    third more loss."""
    weight: Text | None = None
    """The variable of role weight that means, votes, losses and risks are weighted by; needed where there are
    several, of which every one is published, and measured."""
    weighted: bool = True
    """Where there is a weight, clusters and what they publish use it: means are made to keep weighted
    totals. k counts without it, and so do control tables and counts of combinations. No record has more than
    2/k of its cluster's weight, nor two thirds: clusters are merged, and where that does not help, its weight
    is trimmed. `false` leaves the weight to tables and measures, and makes means keep totals without it."""
    control_tables: ControlTables = ControlTables()
    """The tables protection is to spare."""

    def method_parameters(self, row: MethodRow) -> Parameters | None:
        """Return the parameters of the method, as its row declares them."""
        return method_parameters(row, self.parameters)


class Blocking(Section):
    """`[blocking]`: how records are cut into units that are solved together."""

    max_records: AutoOrCount = "auto"
    """Most records of a block; "auto" by effort. A larger one is cut again unless a half lacks units or
    sensitive values that every cluster needs."""
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


class Quality(Acceptable):
    """`[quality]`: the gate. The four limits on disclosure hold by default; the others where given."""

    max_information_loss: Share | None = None
    """SSE/SST over the numeric quasi-identifiers."""
    max_chi2_per_cell: Bound | None = None
    """Chi-square over the cells of the control tables, divided by their number."""
    max_absolute_error: ByDimension | None = None
    """Largest change of a cell, by dimension of the table, that the gate lets pass."""
    max_vanished: ByDimension | None = None
    """Cells that held k records or more and are empty now, by dimension of the table, that the gate lets
    pass; those of regions apart."""
    max_unique_published: Share = 0.01
    """Share of records unique on the protected variables joined with any one column published as it is.

    A sensitive variable is joined where most of its values are numbers, dates or times, and there is another
    sensitive variable to learn. It is also the limit of records with a text of their own in a sensitive
    variable, if nine in ten of its texts (of 20 or more) occur once, as e-mail addresses and notes do.
    """
    max_unique_jointly: Share = 0.05
    """The same, joined with all columns published as they are; with groups, of all groups' variables too."""
    max_homogeneous: Share = 0.05
    """Share of records in classes with one value of a sensitive variable, or none but missing ones."""
    max_of_one_value: Share | None = None
    """Share of records in clusters that have one value of a numeric quasi-identifier: it is their mean."""
    min_entropy_diversity: Annotated[Number, Field(ge=1)] | None = None
    """Least exp(entropy) of a sensitive variable in a class."""
    max_t: Share | None = None
    """Largest distance of a sensitive variable's distribution in a class from that of the whole file."""
    max_below_k_in_population: Share | None = None
    """Share of records whose combination fewer than k of the `[population]` have, none among them (k-map)."""
    accept: dict[Text, Text] = Field(default={})
    """A steward's exemption from a limit that holds by default: its name = the reason, and by whom. A limit
    that is set to a looser value holds at this value, and the reason is given for it."""
    dominance: Dominance | None = None
    """Clusters whose largest contributors dominate a numeric total."""


class Publish(Section):
    """`[publish]`: where the release and the evidence go."""

    path: PathText
    """Public area: a folder, relative to the specification, or an object store (`s3://bucket/place`, `gs://`,
    `abfss://`) whose credentials and endpoint stand in the environment."""
    evidence: PathText
    """Agency only, a folder or an object store; not inside the public area. Relative to the specification."""
    format: Literal["parquet", "delta", "iceberg"] = "parquet"
    """Table format of the release. In an object store, "iceberg" needs a catalogue."""
    catalog: CatalogName | None = None
    """A catalogue of Iceberg tables in which every release is a snapshot of `table`, with a tag that is its
    id: an address (`https://`, `sqlite:///lake/catalog.db`, `postgresql+psycopg2://`, `thrift://`), or a name
    of pyiceberg's configuration. Credentials stand in that configuration or the environment. Needs `format` =
    "iceberg"; its metadata lie in the public area, and a withdrawn release leaves none of its snapshots."""
    table: TableName | None = None
    """The table in the catalogue, with its namespace: "statistics.persons"."""
    partition_by: Text | None = None
    """The variable of role region: its records lie in a folder of their own, `microdata/region=value/`, as
    Hive, Spark, DuckDB, pandas, pyarrow and Polars read it. Text or whole numbers; values that a reader would
    take for something else (text 007 for 7) are refused. Not for a table format, which has files of its
    own."""
    csv: bool = False
    """Whether the records are published as CSV next to the Parquet files, too: `microdata.csv`, the same
    records in the same order."""
    accept_dependencies: Names = ()
    """Columns published as they are although they determine a protected variable, or nearly do: 19 in 20 of
    the records that guessing its commonest value gets wrong are right by them, or within 1 % where it is a
    sum or a product of them, or lies between the values next to it."""
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
    """Folder or object store that several evidence areas share, so that each finds the records it is given
    again among those that the others published. Relative to the specification."""
    disclose: Annotated[tuple[Disclosable, ...], Field(strict=False)] = ()
    """Whole-file measures against the original that a steward allows to be public; numbers of records to
    multiples of k."""


class Series(Section):
    """`[series]`: limits of a series of releases; above one of its shares an update needs a rebase."""

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
