"""Build the parser of the command line from the table of verbs, and a completion script for shells."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import NoReturn

from microguard.jobs.verbs import SHARED, VERBS
from microguard.schemas.errors import SpecificationError

EXIT_CODES = """exit codes:
  0 done                      4 quality gate refused
  2 faulty specification      5 protection failed
  3 input rejected            1 anything else
"""


class _Parser(argparse.ArgumentParser):
    """A parser that raises `SpecificationError` (one paragraph, exit code 2)."""

    def error(self, message: str) -> NoReturn:
        for word in re.findall(r"argument VERB: invalid choice: '([^']*)'", message):
            for near in get_close_matches(word, list(VERBS), 1):
                message = f"there is no verb {word!r}; did you mean {near!r}? {self.prog} --help lists all"
                raise SpecificationError(f"{self.prog}: {message}.")
        raise SpecificationError(f"{self.prog}: {message}. Try {self.prog} --help.")


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from microguard.pipelines.engine.versions import microguard_version

        print(f"microguard {microguard_version()}")
        parser.exit()


class _Completion(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        print(completion_script())
        parser.exit()


def completion_script() -> str:
    """Return the completion of verbs, options and files for bash, and for zsh by `bashcompinit`."""
    cases = []
    for verb in VERBS.values():
        named = (*verb.arguments, *SHARED)
        words = [flag for argument in named if not argument.positional for flag in argument.flags]
        cases.append(f"    {verb.name}) words='{' '.join(words)}' ;;")
    return "\n".join(
        [
            '# for bash: eval "$(microguard --completion)"',
            "_microguard() {",
            "  local words",
            '  case "${COMP_WORDS[1]}" in',
            *cases,
            f"    *) words='{' '.join(VERBS)}' ;;",
            "  esac",
            '  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))',
            "}",
            "complete -o default -F _microguard microguard",
        ]
    )


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse a command line.

    Raises
    ------
    SpecificationError
        If the command line is faulty.
    """
    return _parser().parse_args(arguments)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="microguard",
        description="Statistical disclosure control for large microdata: verified, or not published.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    parser.add_argument(
        "--completion", action=_Completion, nargs=0, help="print a completion script for bash"
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=_Parser)
    for verb in VERBS.values():
        described = f"{verb.purpose.capitalize()}."
        examples = "\n".join(f"  microguard {example}" for example in verb.examples)
        subparser = verbs.add_parser(
            verb.name,
            help=verb.purpose,
            description=described,
            epilog=f"examples:\n{examples}\n",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        for argument in verb.arguments:
            subparser.add_argument(*argument.flags, **argument.options)
        shared = subparser.add_argument_group("common options")
        for argument in SHARED:
            shared.add_argument(*argument.flags, **argument.options)
    return parser
