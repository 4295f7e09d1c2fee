"""Define the verbs in one table, with their arguments and pipelines, and call them.

To add a verb, write its pipeline, add a row to the table, and add a script of the same name to this folder. A
pipeline receives positional arguments by position and options by name. If it has parameters named `master`,
`progress` or `show`, it also receives these. It returns a `CommandResult`.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from microguard.schemas.errors import SpecificationError
from microguard.schemas.paths import expanded

if TYPE_CHECKING:
    from microguard.pipelines.engine.command_result import CommandResult
    from microguard.pipelines.engine.progress import Progress


@dataclass(frozen=True)
class Argument:
    """One argument of a verb: its flags (for a positional argument its name) and the options of argparse."""

    flags: tuple[str, ...]
    options: dict[str, Any]

    @property
    def positional(self) -> bool:
        """Return whether the argument is positional: its name has no dashes."""
        return not self.flags[0].startswith("-")

    @property
    def name(self) -> str:
        """Return the name of the parsed value."""
        return str(self.options.get("dest") or self.flags[0].lstrip("-").replace("-", "_"))


@dataclass(frozen=True)
class Verb:
    """One verb.

    Attributes
    ----------
    name : str
        Name on the command line and of the script.
    purpose : str
        Description for `--help`.
    pipeline : str
        "module:function", imported when the verb is called.
    arguments : tuple of Argument
    shown_when_quiet : bool
        Whether the summary is the result of the verb, so that `--quiet` does not suppress it.
    examples : tuple of str
        Arguments of calls that `--help` shows.
    starts_spark : bool
        Whether the verb starts Spark for the input of its specification: then Java is started in parallel
        with the imports.
    """

    name: str
    purpose: str
    pipeline: str
    arguments: tuple[Argument, ...]
    examples: tuple[str, ...]
    shown_when_quiet: bool = False
    starts_spark: bool = False

    def function(self) -> Callable[..., CommandResult]:
        """Import the pipeline."""
        module, _, name = self.pipeline.partition(":")
        return getattr(importlib.import_module(module), name)


def _argument(*flags: str, **options: Any) -> Argument:
    return Argument(flags, options)


def _count(text: str) -> int:
    digits = text.replace(",", "").replace("_", "")
    if not (digits.isdecimal() and digits.isascii() and len(digits) < 19 and int(digits) >= 1):
        raise argparse.ArgumentTypeError(f"found {text}, expected a whole number of at least 1")
    return int(digits)


def _person(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("found an empty text, expected the name of a person")
    return text.strip()


def _path(text: str) -> str:
    try:
        return expanded(text)
    except SpecificationError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


SPECIFICATION = _argument("specification", type=_path, metavar="SPEC", help="release specification (TOML)")
OVERRIDES = _argument(
    "--set",
    dest="overrides",
    action="append",
    default=[],
    metavar="SECTION.KEY=VALUE",
    help="override a key of the specification (repeatable)",
)
CHOICES = _argument(
    "--choice",
    dest="choices",
    action="append",
    nargs="+",
    default=[],
    metavar="SECTION.KEY=VALUE",
    help="compare with a variant that overrides these keys in addition to --set (repeatable)",
)
RELEASE = _argument(
    "release",
    type=_path,
    metavar="RELEASE",
    help="folder of a release, or a public area or specification (for its current release)",
)

BY = _argument(
    "--by", required=True, type=_person, metavar="NAME", help="person who decides; recorded in the ledger"
)
NOTE = _argument("--note", default="", metavar="TEXT", help="reason; recorded in the ledger")
LOST = _argument(
    "--lost",
    action="store_true",
    help="the public area is permanently lost: record all its releases as withdrawn",
)
REBASE = _argument(
    "--rebase",
    action="store_true",
    help="for a register: protect all records from scratch instead of the changes since the last release",
)

_ROWS = (
    Verb(
        "demo",
        "generate microdata of a synthetic town and protect them",
        "microguard.pipelines.demo:demo",
        (
            _argument("--records", type=_count, default=20_000, metavar="N", help="persons (20,000)"),
            _argument(
                "--kind",
                choices=("mixed", "nominal", "numeric"),
                default="mixed",
                help="quasi-identifiers: nominal and numeric ones (mixed), 8 nominal, or 10 numeric",
            ),
            _argument("--out", type=_path, default="demo", metavar="DIR", help="folder to write to (demo)"),
            _argument("--only-data", action="store_true", help="generate the data without protecting them"),
            OVERRIDES,
        ),
        examples=(
            "demo",
            "demo --records 2000 --kind nominal --out town",
        ),
    ),
    Verb(
        "draft",
        "profile a file and print a draft specification with its disclosure risk",
        "microguard.pipelines.draft:draft",
        (
            _argument("input", type=_path, metavar="INPUT", help="Parquet or CSV: a file, folder or glob"),
            _argument(
                "--cells",
                type=_path,
                metavar="FILE",
                help="of a JSON-stat table: write its cells to this new CSV file, and draft that",
            ),
        ),
        shown_when_quiet=True,
        examples=("draft persons.csv > release.toml", "draft table.json --cells cells.csv > table.toml"),
    ),
    Verb(
        "start",
        "open a workbench in the browser for a file or a specification",
        "microguard.pipelines.start:start",
        (
            _argument("file", type=_path, metavar="FILE", help="Parquet, CSV or specification (TOML)"),
            _argument("--port", default="0", metavar="N", help="port of 127.0.0.1 (any that is free)"),
            _argument("--no-browser", action="store_true", help="print the address only"),
        ),
        examples=("start persons.csv", "start release.toml --no-browser"),
    ),
    Verb(
        "check",
        "validate specification and input, print the risk before protection, and predict refusals",
        "microguard.pipelines.check:check",
        (SPECIFICATION, OVERRIDES),
        shown_when_quiet=True,
        starts_spark=True,
        examples=(
            "check release.toml",
            "check release.toml --set release.k=5 --json",
        ),
    ),
    Verb(
        "protect",
        "protect the microdata of a specification and publish them",
        "microguard.pipelines.protect:protect",
        (SPECIFICATION, OVERRIDES, REBASE),
        starts_spark=True,
        examples=(
            "protect release.toml",
            "protect release.toml --set method.effort=fast --quiet",
        ),
    ),
    Verb(
        "adjust",
        "controlled tabular adjustment of a table",
        "microguard.pipelines.adjust:adjust",
        (SPECIFICATION, OVERRIDES),
        starts_spark=True,
        examples=(
            "adjust table.toml",
            "adjust table.toml --set table.effort=thorough",
        ),
    ),
    Verb(
        "clean",
        "remove resume folders and staging areas of abandoned runs",
        "microguard.pipelines.clean:clean",
        (
            _argument(
                "areas", nargs="*", type=_path, metavar="FOLDER", help="folders to clean (working folder)"
            ),
        ),
        examples=(
            "clean",
            "clean evidence/persons",
        ),
    ),
    Verb(
        "report",
        "rebuild the reports of a release",
        "microguard.pipelines.report:report",
        (RELEASE,),
        examples=("report evidence/persons/RELEASE",),
    ),
    Verb(
        "verify",
        "audit the published files of a release with a second engine",
        "microguard.pipelines.verify:verify",
        (RELEASE,),
        shown_when_quiet=True,
        examples=(
            "verify lake/persons",
            "verify lake/persons/RELEASE",
        ),
    ),
    Verb(
        "withdraw",
        "remove a release from the public area and record it in the ledger",
        "microguard.pipelines.withdraw:withdraw",
        (RELEASE, LOST),
        examples=("withdraw lake/persons/RELEASE",),
    ),
    Verb(
        "compare",
        "compare risk and information loss by k and by variant on a sample; publishes nothing",
        "microguard.pipelines.compare:compare",
        (
            SPECIFICATION,
            _argument("--k", default="3,5,10", metavar="K,K,...", help="values of k (3,5,10)"),
            OVERRIDES,
            CHOICES,
        ),
        shown_when_quiet=True,
        starts_spark=True,
        examples=(
            "compare release.toml --k 3,5,10",
            "compare release.toml --choice method.effort=thorough --choice method.min_diversity=2",
        ),
    ),
    Verb(
        "approve",
        "publish a release that is pending approval",
        "microguard.pipelines.approval:approve",
        (RELEASE, BY, NOTE),
        examples=('approve evidence/persons/RELEASE --by "A. Steward" --note "as agreed"',),
    ),
    Verb(
        "reject",
        "refuse a release that is pending approval; its evidence is kept",
        "microguard.pipelines.approval:reject",
        (RELEASE, BY, NOTE),
        examples=('reject evidence/persons/RELEASE --by "A. Steward" --note "too coarse"',),
    ),
    Verb(
        "pending",
        "list the releases of a specification that are pending approval",
        "microguard.pipelines.approval:pending",
        (SPECIFICATION, OVERRIDES),
        shown_when_quiet=True,
        examples=("pending release.toml",),
    ),
    Verb(
        "history",
        "list the releases of a source: entrants, exits, pending releases and joint exposure",
        "microguard.pipelines.history:history",
        (SPECIFICATION, OVERRIDES),
        shown_when_quiet=True,
        examples=("history release.toml",),
    ),
    Verb(
        "audit",
        "audit all current and withdrawn releases of a source jointly",
        "microguard.pipelines.joint_audit:audit_source",
        (SPECIFICATION, OVERRIDES),
        shown_when_quiet=True,
        examples=("audit release.toml",),
    ),
    Verb(
        "benchmark",
        "run the benchmarks of the repository",
        "microguard.pipelines.benchmark:benchmark",
        (
            _argument("name", nargs="?", metavar="NAME", help="name of one benchmark (all)"),
            _argument("--quick", action="store_true", help="smaller instances, the same assertions"),
        ),
        shown_when_quiet=True,
        examples=(
            "benchmark",
            "benchmark numeric --quick",
        ),
    ),
)
VERBS = {verb.name: verb for verb in _ROWS}

SHARED = (
    _argument("--master", metavar="URL", help="Spark master (local[*])"),
    _argument("--json", action="store_true", help="last line of output is one JSON object"),
    _argument("--outcome", metavar="FILE", help="write the same object to a file, also after a failure"),
    _argument("--log", choices=("json",), help="print events as JSON lines to standard error, no progress"),
    _argument(
        "--quiet", action="store_true", help="no progress, and a summary of one line unless it is the result"
    ),
    _argument("--debug", action="store_true", help="print tracebacks; they may show values of records"),
)


def call(
    parsed: argparse.Namespace, progress: Callable[[], Progress], show: Callable[[str], None]
) -> CommandResult:
    """Run the verb of a parsed command line.

    A faulty specification is refused before Spark or another engine is loaded.

    Parameters
    ----------
    progress : callable
        Creates the progress display.
    show : callable
        Prints a part of the result as soon as it is available.
    """
    verb = VERBS[parsed.verb]
    values = {argument.name: getattr(parsed, argument.name) for argument in verb.arguments}
    if SPECIFICATION in verb.arguments:
        from microguard.schemas.specification.read import read_specification

        path, overrides = values["specification"], values.pop("overrides")
        values["specification"] = read_specification(path, overrides)
        if "choices" in values:
            values["choices"] = {
                " ".join(choice): read_specification(path, [*overrides, *choice])
                for choice in values["choices"]
            }
    if verb.starts_spark:
        from microguard.pipelines.engine.session import prestart_java
        from microguard.pipelines.intake.input_file import require_input

        require_input(values["specification"])
        prestart_java(parsed.master, values["specification"].input_path)
    by_position = [values.pop(argument.name) for argument in verb.arguments if argument.positional]
    function = verb.function()
    on_request: dict[str, Callable[[], Any]] = {
        "master": lambda: parsed.master,
        "progress": progress,
        "show": lambda: show,
    }
    parameters = inspect.signature(function).parameters
    values |= {name: make() for name, make in on_request.items() if name in parameters}
    return function(*by_position, **values)
