"""The command line: verbs, their arguments, and the options all verbs share."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from schemas.errors import SpecificationError

VERBS = {
    "demo": "make a synthetic town and protect it",
    "draft": "profile a file and print a draft specification with the risk it sees",
    "check": "validate specification and input, and print the risk before protection",
    "protect": "protect the microdata of a specification and publish them",
    "adjust": "controlled tabular adjustment of a table",
    "clean": "remove resume folders and staging of runs that will not come back",
    "report": "rebuild the reports of a release",
    "verify": "audit a published release from outside, with another engine",
    "withdraw": "remove a release from the public area and record it in the ledger",
    "benchmark": "run the benchmarks of the repository",
}
SPECIFIED = frozenset({"demo", "check", "protect", "adjust"})
"""Verbs that read a specification, so that --set means something to them."""

EXIT_CODES = """exit codes:
  0 done                      4 quality gate refused
  2 faulty specification      5 protection failed
  3 input rejected            1 anything else
"""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are ours: one paragraph, exit code 2."""

    def error(self, message: str) -> NoReturn:
        raise SpecificationError(f"{self.prog}: {message}. Try {self.prog} --help.")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse a command line; SpecificationError where it is faulty."""
    return _parser().parse_args(arguments)


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
    for name, purpose in VERBS.items():
        verb = verbs.add_parser(
            name, help=purpose, description=purpose.capitalize() + ".", allow_abbrev=False
        )
        _add_own(name, verb)
        _add_shared(name, verb)
    return parser


def _add_own(name: str, verb: argparse.ArgumentParser) -> None:
    match name:
        case "demo":
            verb.add_argument("--records", type=_count, default=20_000, metavar="N", help="persons (20,000)")
            verb.add_argument(
                "--kind",
                choices=("mixed", "nominal", "numeric"),
                default="mixed",
                help="kind of the quasi-identifiers: a few of both (mixed), 8 nominal, or 10 numeric",
            )
            verb.add_argument("--out", default="demo", metavar="DIR", help="folder to write to (demo)")
            verb.add_argument("--only-data", action="store_true", help="do not protect")
        case "draft":
            verb.add_argument("input", metavar="INPUT", help="Parquet or CSV: a file, folder or glob")
        case "check" | "protect" | "adjust":
            verb.add_argument("specification", metavar="SPEC", help="release specification (TOML)")
        case "clean":
            verb.add_argument("areas", nargs="*", metavar="FOLDER", help="where to look (this folder)")
        case "report" | "verify" | "withdraw":
            verb.add_argument(
                "release",
                metavar="RELEASE",
                help="folder of the release, a public area or a specification (then the current release)",
            )
        case "benchmark":
            verb.add_argument("name", nargs="?", metavar="NAME", help="which one (all)")
            verb.add_argument("--quick", action="store_true", help="smaller instances, the same assertions")


def _add_shared(name: str, verb: argparse.ArgumentParser) -> None:
    shared = verb.add_argument_group("common options")
    if name in SPECIFIED:
        shared.add_argument(
            "--set",
            action="append",
            default=[],
            metavar="SECTION.KEY=VALUE",
            help="override a key of the specification (repeatable)",
        )
    shared.add_argument("--master", metavar="URL", help="Spark master (local[*])")
    shared.add_argument("--json", action="store_true", help="last line of output is one JSON object")
    shared.add_argument(
        "--quiet", action="store_true", help="no progress, and no summary where it is an extra"
    )
    shared.add_argument(
        "--debug", action="store_true", help="add the traceback; it may show values of records"
    )


def _count(text: str) -> int:
    digits = text.replace(",", "").replace("_", "")
    if not digits.isdecimal() or int(digits) < 1:
        raise argparse.ArgumentTypeError(f"found {text}, allowed: a whole number of at least 1")
    return int(digits)


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import version

        print(f"microguard {version('microguard')}")
        parser.exit()
