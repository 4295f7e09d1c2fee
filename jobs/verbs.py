"""The verbs: one row each, with its arguments and the pipeline it calls, and the parser made of them.

To add a verb, write its pipeline, add its row and a script of its name beside this file. A pipeline takes
what is positional on the command line by position and the options of its row by name; further it gets what
its parameters ask for of `master`, `progress` and `show`. It answers with an `CommandResult`.
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
    """One argument of a verb: its flags (or its one name, where it is positional) and argparse's options."""

    flags: tuple[str, ...]
    options: dict[str, Any]

    @property
    def positional(self) -> bool:
        """Whether it has no dashes."""
        return not self.flags[0].startswith("-")

    @property
    def name(self) -> str:
        """What the parsed value is called."""
        return str(self.options.get("dest") or self.flags[0].lstrip("-").replace("-", "_"))


@dataclass(frozen=True)
class Verb:
    """One verb.

    Attributes
    ----------
    name : str
        On the command line, and of its script.
    purpose : str
        What it does, for `--help`.
    pipeline : str
        "module:function", imported when the verb is called.
    arguments : tuple of Argument
    shown_when_quiet : bool
        Whether its summary is what it was called for, so that `--quiet` leaves it standing.
    starts_spark : bool
        Whether it starts Spark for the input of its specification: Java starts beside its imports.
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
        raise argparse.ArgumentTypeError(f"found {text}, allowed: a whole number of at least 1")
    return int(digits)


def _person(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("found nothing, allowed: the name of a person")
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
    help="compare with what these override beside --set (repeatable: a choice each)",
)
RELEASE = _argument(
    "release",
    type=_path,
    metavar="RELEASE",
    help="folder of the release, a public area or a specification (then the current release)",
)

BY = _argument("--by", required=True, type=_person, metavar="NAME", help="who decides; kept in the ledger")
NOTE = _argument("--note", default="", metavar="TEXT", help="why; kept in the ledger")
LOST = _argument(
    "--lost",
    action="store_true",
    help="its public area is lost for good: record all releases in it as withdrawn",
)
REBASE = _argument(
    "--rebase",
    action="store_true",
    help="of a register: solve everything again, by decision, not step by step",
)

_ROWS = (
    Verb(
        "demo",
        "make a synthetic town and protect it",
        "microguard.pipelines.demo:demo",
        (
            _argument("--records", type=_count, default=20_000, metavar="N", help="persons (20,000)"),
            _argument(
                "--kind",
                choices=("mixed", "nominal", "numeric"),
                default="mixed",
                help="kind of the quasi-identifiers: a few of both (mixed), 8 nominal, or 10 numeric",
            ),
            _argument("--out", type=_path, default="demo", metavar="DIR", help="folder to write to (demo)"),
            _argument("--only-data", action="store_true", help="do not protect"),
            OVERRIDES,
        ),
    ),
    Verb(
        "draft",
        "profile a file and print a draft specification with the risk it sees",
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
        "remove resume folders and staging of runs that will not come back",
        "microguard.pipelines.clean:clean",
        (_argument("areas", nargs="*", type=_path, metavar="FOLDER", help="where to look (this folder)"),),
    ),
    Verb("report", "rebuild the reports of a release", "microguard.pipelines.report:report", (RELEASE,)),
    Verb(
        "verify",
        "audit a published release from outside, with another engine",
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
        "risk against loss by k and by choice on a stated sample; publishes nothing",
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
        "list the releases of a source: who came, left and waits, and what they expose together",
        "microguard.pipelines.history:history",
        (SPECIFICATION, OVERRIDES),
        shown_when_quiet=True,
    ),
    Verb(
        "audit",
        "audit everything that stands or stood of a source together",
        "microguard.pipelines.joint_audit:audit_source",
        (SPECIFICATION, OVERRIDES),
        shown_when_quiet=True,
    ),
    Verb(
        "benchmark",
        "run the benchmarks of the repository",
        "microguard.pipelines.benchmark:benchmark",
        (
            _argument("name", nargs="?", metavar="NAME", help="which one (all)"),
            _argument("--quick", action="store_true", help="smaller instances, the same assertions"),
        ),
        shown_when_quiet=True,
    ),
)
VERBS = {verb.name: verb for verb in _ROWS}

_SHARED = (
    _argument("--master", metavar="URL", help="Spark master (local[*])"),
    _argument("--json", action="store_true", help="last line of output is one JSON object"),
    _argument("--outcome", metavar="FILE", help="write the same object to a file, however the run ends"),
    _argument("--log", choices=("json",), help="events as JSON lines to standard error, no progress"),
    _argument("--quiet", action="store_true", help="no progress, and no summary where it is an extra"),
    _argument("--debug", action="store_true", help="add the traceback; it may show values of records"),
)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are ours: one paragraph, exit code 2."""

    def error(self, message: str) -> NoReturn:
        raise SpecificationError(f"{self.prog}: {message}. Try {self.prog} --help.")


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import version

        print(f"microguard {version('microguard')}")
        parser.exit()


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse a command line; SpecificationError where it is faulty."""
    return _parser().parse_args(arguments)


def call(
    parsed: argparse.Namespace, progress: Callable[[], Progress], show: Callable[[str], None]
) -> CommandResult:
    """Run the verb of a parsed command line; a faulty specification is refused before an engine is loaded.

    `show` takes a part of the answer as soon as it is there.
    """
    verb = VERBS[parsed.verb]
    given = {argument.name: getattr(parsed, argument.name) for argument in verb.arguments}
    if SPECIFICATION in verb.arguments:
        from microguard.schemas.specification.read import read_specification

        path, overrides = given["specification"], given.pop("overrides")
        given["specification"] = read_specification(path, overrides)
        if "choices" in given:
            given["choices"] = {
                " ".join(choice): read_specification(path, [*overrides, *choice])
                for choice in given["choices"]
            }
    if verb.starts_spark:
        from microguard.pipelines.engine.session import prestart_java

        prestart_java(parsed.master, given["specification"].input_path)
    by_position = [given.pop(argument.name) for argument in verb.arguments if argument.positional]
    function = verb.function()
    on_request: dict[str, Callable[[], Any]] = {
        "master": lambda: parsed.master,
        "progress": progress,
        "show": lambda: show,
    }
    asked = inspect.signature(function).parameters
    given |= {name: make() for name, make in on_request.items() if name in asked}
    return function(*by_position, **given)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="microguard",
        description="Statistical disclosure control for large microdata: verified, or not published.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and leave")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=_Parser)
    for verb in VERBS.values():
        described = f"{verb.purpose.capitalize()}."
        of_verb = verbs.add_parser(verb.name, help=verb.purpose, description=described, allow_abbrev=False)
        for argument in verb.arguments:
            of_verb.add_argument(*argument.flags, **argument.options)
        shared = of_verb.add_argument_group("common options")
        for argument in _SHARED:
            shared.add_argument(*argument.flags, **argument.options)
    return parser
