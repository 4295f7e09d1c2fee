"""Define the verbs in one table, with their arguments and pipelines, and build the parser from it.

To add a verb, write its pipeline, add a row to the table, and add a script of the same name to this folder. A
pipeline receives positional arguments by position and options by name. If it has parameters named `master`,
`progress` or `show`, it also receives these. It returns a `CommandResult`.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from microguard.schemas.errors import SpecificationError
from microguard.schemas.paths import expanded

if TYPE_CHECKING:
    from microguard.pipelines.engine.command_result import CommandResult
    from microguard.pipelines.engine.progress import Progress

EXIT_CODES = """exit codes:
  0 done                      4 quality gate refused
  2 faulty specification      5 protection failed
  3 input rejected            1 anything else
"""


@dataclass(frozen=True)
class Argument:
    """One argument of a verb: its flags (for a positional argument its name) and the options of argparse."""

    flags: tuple[str, ...]
    options: dict[str, Any]

    @property
    def positional(self) -> bool:
        """Whether the argument is positional: it has no dashes."""
        return not self.flags[0].startswith("-")

    @property
    def name(self) -> str:
        """Name of the parsed value."""
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
    starts_spark : bool
        Whether the verb starts Spark for the input of its specification: then Java is started in parallel
        with the imports.
    """

    name: str
    purpose: str
    pipeline: str
    arguments: tuple[Argument, ...]
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
    help="for a register: protect all records anew instead of the changes since the last release",
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
    ),
    Verb(
        "draft",
        "profile a file and print a draft specification with its disclosure risk",
        "microguard.pipelines.draft:draft",
        (_argument("input", type=_path, metavar="INPUT", help="Parquet or CSV: a file, folder or glob"),),
        shown_when_quiet=True,
    ),
    Verb(
        "check",
        "validate specification and input, and print the risk before protection",
        "microguard.pipelines.check:check",
        (SPECIFICATION, OVERRIDES),
        shown_when_quiet=True,
        starts_spark=True,
    ),
    Verb(
        "protect",
        "protect the microdata of a specification and publish them",
        "microguard.pipelines.protect:protect",
        (SPECIFICATION, OVERRIDES, REBASE),
        starts_spark=True,
    ),
    Verb(
        "adjust",
        "controlled tabular adjustment of a table",
        "microguard.pipelines.adjust:adjust",
        (SPECIFICATION, OVERRIDES),
        starts_spark=True,
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
    ),
    Verb("report", "rebuild the reports of a release", "microguard.pipelines.report:report", (RELEASE,)),
    Verb(
        "verify",
        "audit the published files of a release with a second engine",
        "microguard.pipelines.verify:verify",
        (RELEASE,),
        shown_when_quiet=True,
    ),
    Verb(
        "withdraw",
        "remove a release from the public area and record it in the ledger",
        "microguard.pipelines.withdraw:withdraw",
        (RELEASE, LOST),
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
    ),
    Verb(
        "approve",
        "publish a release that waits for approval",
        "microguard.pipelines.approval:approve",
        (RELEASE, BY, NOTE),
    ),
    Verb(
        "reject",
        "refuse a release that waits for approval; its evidence stays",
        "microguard.pipelines.approval:reject",
        (RELEASE, BY, NOTE),
    ),
    Verb(
        "pending",
        "list the releases of a specification that wait for approval",
        "microguard.pipelines.approval:pending",
        (SPECIFICATION, OVERRIDES),
        shown_when_quiet=True,
    ),
    Verb(
        "history",
        "list the releases of a source: entrants, exits, pending releases and joint exposure",
        "microguard.pipelines.history:history",
        (SPECIFICATION, OVERRIDES),
        shown_when_quiet=True,
    ),
    Verb(
        "audit",
        "audit all current and withdrawn releases of a source jointly",
        "microguard.pipelines.joint_audit:audit_source",
        (SPECIFICATION, OVERRIDES),
        shown_when_quiet=True,
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
    ),
)
VERBS = {verb.name: verb for verb in _ROWS}

_SHARED = (
    _argument("--master", metavar="URL", help="Spark master (local[*])"),
    _argument("--json", action="store_true", help="last line of output is one JSON object"),
    _argument("--outcome", metavar="FILE", help="write the same object to a file, also after a failure"),
    _argument("--log", choices=("json",), help="print events as JSON lines to standard error, no progress"),
    _argument("--quiet", action="store_true", help="no progress, and no summary unless it is the result"),
    _argument("--debug", action="store_true", help="print tracebacks; they may show values of records"),
)


class _Parser(argparse.ArgumentParser):
    """A parser that raises `SpecificationError` (one paragraph, exit code 2)."""

    def error(self, message: str) -> NoReturn:
        raise SpecificationError(f"{self.prog}: {message}. Try {self.prog} --help.")


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import version

        print(f"microguard {version('microguard')}")
        parser.exit()


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse a command line.

    Raises
    ------
    SpecificationError
        If the command line is faulty.
    """
    return _parser().parse_args(arguments)


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


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="microguard",
        description="Statistical disclosure control for large microdata: verified, or not published.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=_Parser)
    for verb in VERBS.values():
        described = f"{verb.purpose.capitalize()}."
        subparser = verbs.add_parser(verb.name, help=verb.purpose, description=described, allow_abbrev=False)
        for argument in verb.arguments:
            subparser.add_argument(*argument.flags, **argument.options)
        shared = subparser.add_argument_group("common options")
        for argument in _SHARED:
            shared.add_argument(*argument.flags, **argument.options)
    return parser
