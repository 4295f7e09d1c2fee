"""Malformed specifications: the change of a valid one, and the key that the report must name."""

from __future__ import annotations

from dataclasses import dataclass

from tests.schemas.sound import SOUND


@dataclass(frozen=True)
class Malformed:
    """One case: `old` becomes `new` in the sound specification; the report contains every one of `named`."""

    name: str
    old: str
    new: str
    named: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return the malformed specification."""
        assert self.old in SOUND, self.name
        return SOUND.replace(self.old, self.new, 1)


def _effort(more: str) -> str:
    return f'effort = "standard"\n{more}'


INCOME = 'income = { role = "quasi_identifier", kind = "numeric" }'
SEX = 'sex = { role = "quasi_identifier", kind = "nominal" }'
METHOD = 'effort = "standard"'
PUBLISH = 'evidence = "evidence"'

MALFORMED = (
    Malformed("not TOML", "[release]", "[release", ("not valid TOML", "line 1")),
    Malformed(
        "key beside its section",
        "[input]",
        "[quality] max_t = 0.3\n[input]",
        ("not valid TOML", "next lines"),
    ),
    Malformed("section twice", "[input]", "[release]\n[input]", ("not valid TOML", "in the file once")),
    Malformed("key twice", "k = 3", "k = 3\nk = 4", ("not valid TOML", "line 4")),
    Malformed("no section release", "[release]", "[releases]", ("[release]", "[releases]", "did you mean")),
    Malformed("unknown section", "[method]", "[methods]", ("[methods]", "unknown key", '"method"')),
    Malformed(
        "unknown key", METHOD, _effort('efort = "fast"'), ("[method] efort", "unknown key", '"effort"')
    ),
    Malformed("no k", "k = 3\n", "", ("[release] k", "found nothing")),
    Malformed("k of one", "k = 3", "k = 1", ("[release] k", "found 1", "at least 2")),
    Malformed("k is no whole number", "k = 3", "k = 3.5", ("[release] k", "found 3.5", "a whole number")),
    Malformed("k is text", "k = 3", 'k = "3"', ("[release] k", 'found "3"', "a whole number")),
    Malformed("k is true", "k = 3", "k = true", ("[release] k", "found true", "a whole number")),
    Malformed("negative seed", "seed = 2026", "seed = -1", ("[release] seed", "found -1", "at least 0")),
    Malformed(
        "name leaves the folder", '"persons"', '"../persons"', ("[release] name", '"../persons"', "letters")
    ),
    Malformed("empty name", '"persons"', '""', ("[release] name", 'found ""')),
    Malformed("no input path", 'path = "persons.parquet"\n', "", ("[input] path", "found nothing")),
    Malformed("unknown format", 'format = "parquet"', 'format = "sas"', ("[input] format", "parquet, csv")),
    Malformed(
        "format against suffix", 'format = "parquet"', 'format = "csv"', ("[input] format", ".parquet")
    ),
    Malformed(
        "long delimiter",
        'format = "parquet"',
        'delimiter = ";;"',
        ("[input] delimiter", "at most 1 character"),
    ),
    Malformed(
        "unknown decimal mark",
        'format = "parquet"',
        'decimal = "\'"',
        ("[input] decimal", 'found "\'"', "., ,"),
    ),
    Malformed(
        "unknown role", SEX, 'sex = { role = "key" }', ("[variables] sex.role", 'found "key"', "sensitive")
    ),
    Malformed("no role", SEX, 'sex = { kind = "nominal" }', ("[variables] sex.role", "found nothing")),
    Malformed(
        "no kind",
        SEX,
        'sex = { role = "quasi_identifier" }',
        ("[variables] sex.kind", "nominal, ordinal, hierarchical, numeric"),
    ),
    Malformed(
        "unknown kind",
        SEX,
        'sex = { role = "quasi_identifier", kind = "odd" }',
        ("[variables] sex.kind", 'found "odd"', "nominal, ordinal, hierarchical, numeric"),
    ),
    Malformed(
        "a code of a missing value that is a list",
        SEX,
        SEX.replace(" }", ", missing = [[9]] }"),
        ("[variables] sex.missing", "a number or text"),
    ),
    Malformed(
        "top coding of a category",
        SEX,
        SEX.replace(" }", ", top_code = 5 }"),
        ("[variables] sex.top_code", "unless kind is"),
    ),
    Malformed(
        "bottom above top",
        INCOME,
        INCOME.replace(" }", ", bottom_code = 5, top_code = 5 }"),
        ("[variables] income.bottom_code", "below top_code = 5"),
    ),
    Malformed(
        "bands of a magnitude",
        INCOME,
        INCOME.replace(" }", ", bands = [0, 10] }"),
        ("[variables] income.bands", "categories"),
    ),
    Malformed(
        "bands that do not ascend",
        SEX,
        SEX.replace(" }", ", bands = [10, 0] }"),
        ("[variables] sex.bands", "ascending"),
    ),
    Malformed(
        "a hierarchy without a level",
        SEX,
        SEX.replace(" }", ', hierarchy = "codes.csv" }'),
        ("[variables] sex.level", "found nothing"),
    ),
    Malformed(
        "a level without a hierarchy",
        SEX,
        SEX.replace(" }", ", level = 2 }"),
        ("[variables] sex.level", "without hierarchy"),
    ),
    Malformed(
        "recoding of a weight",
        '"weight" }',
        '"weight", round_to = 1 }',
        ("[variables] weight", "no recoding"),
    ),
    Malformed(
        "one mark for decimals and thousands",
        'format = "parquet"',
        'thousands = "."',
        ("[input] thousands", "another mark"),
    ),
    Malformed(
        "a rule that is none",
        PUBLISH,
        PUBLISH + '\n[rules]\nyoung = "income <"',
        ("[rules] young", "an end where"),
    ),
    Malformed(
        "a rule about what is not published",
        PUBLISH,
        PUBLISH + '\n[rules]\nyoung = "incme > 5"',
        ("[rules] young", 'did you mean "income"'),
    ),
    Malformed(
        "region called like the counts",
        'region = { role = "region" }',
        'Frequency = { role = "region" }',
        ("[variables] Frequency", "another name"),
    ),
    Malformed(
        "a variable as published tables call their counts",
        SEX,
        SEX.replace("sex", "frequency"),
        ("[variables] frequency", "another name"),
    ),
    Malformed(
        "diverse clusters with SAFE",
        SOUND[SOUND.index("income =") : SOUND.index("diagnosis =")]
        + SOUND[SOUND.index("diagnosis =") : SOUND.index(METHOD)]
        + METHOD,
        SOUND[SOUND.index("diagnosis =") : SOUND.index(METHOD)] + 'name = "safe"\nmin_diversity = 2',
        ("[method] min_diversity", "found 2", "1 with method safe"),
    ),
    Malformed(
        "control tables decide in a mixed clustering",
        METHOD,
        _effort('representative = "control_tables"'),
        ("[method] representative", '"control_tables"', "mixed"),
    ),
    Malformed(
        "bounds that no search heeds",
        METHOD,
        _effort('algorithm = "mdav"\ncontrol_tables.max_absolute_error = { 1 = 5 }'),
        ("[method] control_tables.max_absolute_error", "not applicable", "local-search"),
    ),
    Malformed(
        "categories that no search keeps",
        METHOD,
        _effort('representative = "mode"\ncontrol_tables.kept_dimension = 1'),
        ("[method] control_tables.kept_dimension", "found 1", "control_tables"),
    ),
    Malformed(
        "kept cells of no table",
        METHOD,
        _effort(
            'control_tables = { tables = [["sex", "education"]], region_dimension = 0, kept_dimension = 1 }'
        ),
        ("[method] control_tables.kept_dimension", "found 1", "dimension of a control table"),
    ),
    Malformed(
        "vanished cells of no table",
        "[method]",
        "[quality]\nmax_vanished = { 3 = 0 }\n[method]",
        ("[quality] max_vanished", "dimension 3", "1, 2"),
    ),
    Malformed("variable is text", SEX, 'sex = "nominal"', ("[variables] sex", 'found "nominal"', "a table")),
    Malformed(
        "numeric region",
        '"region" }',
        '"region", kind = "numeric" }',
        ("[variables] region.kind", "are names"),
    ),
    Malformed("nominal weight", '"weight" }', '"weight", kind = "nominal" }', ("[variables] weight.kind",)),
    Malformed("two regions", '"other" }', '"region" }', ('["region", "hours"]', "at most one")),
    Malformed(
        "no quasi-identifier",
        SOUND[SOUND.index("sex =") : SOUND.index("diagnosis =")],
        "",
        ("at least one variable of role quasi_identifier",),
    ),
    Malformed(
        "unknown effort", '"standard"', '"fats"', ("[method] effort", 'found "fats"', 'did you mean "fast"')
    ),
    Malformed(
        "unknown algorithm",
        METHOD,
        _effort('algorithm = "mdva"'),
        ("[method] algorithm", 'did you mean "mdav"'),
    ),
    Malformed(
        "algorithm of other kinds",
        METHOD,
        _effort('algorithm = "own-eee"'),
        ("[method] algorithm", "mixed", "mdav"),
    ),
    Malformed(
        "unknown representative",
        METHOD,
        _effort('representative = "average"'),
        ("[method] representative", "median, medoid"),
    ),
    Malformed(
        "SAFE with numbers",
        METHOD,
        _effort('name = "safe"'),
        ("kind", '"numeric"', "nominal with method safe"),
    ),
    Malformed("household without one", METHOD, _effort('unit = "household"'), ("[method] unit", "household")),
    Malformed(
        "households with SAFE",
        SOUND[SOUND.index("income =") : SOUND.index(METHOD)],
        'home = { role = "household" }\n\n[method]\nname = "safe"\nunit = "household"\n',
        ("[method] unit", '"record" with method safe'),
    ),
    Malformed(
        "diversity of nothing",
        SOUND[SOUND.index("diagnosis =") : SOUND.index("[publish]")],
        "[method]\nmin_diversity = 2\n",
        ("[method] min_diversity", "found 2"),
    ),
    Malformed(
        "table of an unknown variable",
        METHOD,
        _effort('control_tables.tables = [["sex", "eduction"]]'),
        ("control_tables.tables", 'found "eduction"', '"education"'),
    ),
    Malformed(
        "tables of too many dimensions",
        METHOD,
        _effort("control_tables.max_dimension = 4"),
        ("control_tables.max_dimension", "found 4", "1 to 2"),
    ),
    Malformed(
        "bound of no table",
        METHOD,
        _effort("control_tables.max_absolute_error = { 3 = 10 }"),
        ("control_tables.max_absolute_error", "dimension 3", "1, 2"),
    ),
    Malformed(
        "blocks below 2k",
        "[method]",
        "[blocking]\nmax_records = 4\n[method]",
        ("[blocking] max_records", "2k = 6"),
    ),
    Malformed(
        "blocks by mood",
        "[method]",
        '[blocking]\nmax_records = "some"\n[method]',
        ("[blocking] max_records", '"auto" or a whole number'),
    ),
    Malformed(
        "negative rejections",
        "[method]",
        "[missing]\nmax_rejected = -1\n[method]",
        ("[missing] max_rejected", "at least 0"),
    ),
    Malformed(
        "loss in percent",
        "[method]",
        "[quality]\nmax_information_loss = 15\n[method]",
        ("[quality] max_information_loss", "found 15", "at most 1"),
    ),
    Malformed(
        "loss is not a number",
        "[method]",
        "[quality]\nmax_information_loss = nan\n[method]",
        ("[quality] max_information_loss", "a finite number"),
    ),
    Malformed(
        "half a dominance rule",
        "[method]",
        "[quality]\ndominance = { n = 1 }\n[method]",
        ("[quality] dominance.k", "found nothing"),
    ),
    Malformed(
        "evidence in the lake", '"evidence"', '"lake/evidence"', ("[publish] evidence", "outside the public")
    ),
    Malformed(
        "input in the lake", '"persons.parquet"', '"lake/persons.parquet"', ("[input] path", "outside")
    ),
    Malformed(
        "population in the lake",
        "[method]",
        '[population]\npath = "lake/people.parquet"\ncount = "people"\n[method]',
        ("[population] path", "outside the public area"),
    ),
    Malformed(
        "acceptance without a reason",
        "[method]",
        '[quality]\naccept = { max_homogeneous = " " }\n[method]',
        ("[quality] accept.max_homogeneous", "the reason, and by whom"),
    ),
    Malformed(
        "dependency of a protected column",
        PUBLISH,
        PUBLISH + '\naccept_dependencies = ["income"]',
        ("[publish] accept_dependencies", 'found "income"'),
    ),
    Malformed(
        "disclose what is no measure",
        PUBLISH,
        PUBLISH + '\ndisclose = ["information_los"]',
        ("[publish] disclose", 'did you mean "information_loss"'),
    ),
    Malformed(
        "partitions of no region",
        PUBLISH,
        PUBLISH + '\npartition_by = "sex"',
        ("[publish] partition_by", 'found "sex"', "region, the variable of role region"),
    ),
    Malformed(
        "CSV in words",
        PUBLISH,
        PUBLISH + '\ncsv = "yes"',
        ("[publish] csv", 'found "yes"'),
    ),
    Malformed(
        "group of a stranger",
        PUBLISH,
        PUBLISH + '\n[[groups]]\nname = "a"\nvariables = ["sex", "education", "income", "hours"]',
        ("[[groups]] 1 variables", 'found "hours"'),
    ),
    Malformed(
        "groups overlap",
        PUBLISH,
        PUBLISH
        + '\n[[groups]]\nname = "a"\nvariables = ["sex", "income"]'
        + '\n[[groups]]\nname = "b"\nvariables = ["education", "income"]',
        ("[[groups]] 2 variables", 'found "income"', "group a"),
    ),
    Malformed(
        "group leaves one out",
        PUBLISH,
        PUBLISH + '\n[[groups]]\nname = "a"\nvariables = ["sex", "education"]',
        ("[groups]", "no group with income"),
    ),
    Malformed(
        "table across groups",
        PUBLISH,
        PUBLISH
        + '\n[method.control_tables]\ntables = [["sex", "education"]]'
        + '\n[[groups]]\nname = "a"\nvariables = ["sex", "income"]'
        + '\n[[groups]]\nname = "b"\nvariables = ["education"]',
        ("control_tables.tables", "cannot combine variables of several groups"),
    ),
)
