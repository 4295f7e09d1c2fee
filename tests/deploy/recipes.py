"""Paths and expectations shared by the tests of all recipes in `deploy`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from microguard.jobs.output import STATUS
from microguard.jobs.parser import parse

DEPLOY = Path(__file__).parents[2] / "deploy"
#: Exit codes after which a retry of the same run fails again.
REFUSED = [code for code in STATUS if code >= 2]
PACKAGES = "/opt/microguard/lib/python3.11/site-packages/microguard/"


def verb_of(arguments: Sequence[str]) -> str:
    """Return the verb of a command line (``microguard VERB`` or a script of jobs), as our parser reads it."""
    words = [str(word) for word in arguments]
    if words[0] == "microguard":
        words = words[1:]
    else:
        script = next(word for word in words if word.endswith(".py"))
        inside = script.removeprefix("local://").removeprefix(PACKAGES)
        assert (DEPLOY.parent / inside).is_file(), script
        words = [Path(script).stem, *words[words.index(script) + 1 :]]
    return str(parse(words).verb)
