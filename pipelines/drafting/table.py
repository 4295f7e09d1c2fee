"""Draft of a commented-out `[table]` section for a file of records: two dimensions, hierarchies and a
value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from microguard.pipelines.drafting.column import Column
from microguard.pipelines.drafting.counting import K
from microguard.pipelines.drafting.guess import Guess
from microguard.pipelines.drafting.profile import Profile

MOST_COLUMNS = 12
"""Maximum number of columns that are tested for nesting; each pair requires a pass over the file."""
DIMENSIONS = 2
"""Number of dimensions of the drafted table; a page can show two."""


def draft_table(profile: Profile, guesses: Sequence[Guess], k: int) -> str:
    """Return the section as TOML comments; an empty text if there is no categorical column."""
    categories = [
        each.column
        for each in guesses
        if each.column is not None
        and (each.role == "region" or _is_category(each))
        and each.column.distinct > 1
    ]
    if not categories:
        return ""
    chains = sorted(_chains(profile, categories[:MOST_COLUMNS]), key=len, reverse=True)[:DIMENSIONS]
    numeric = [each.name for each in guesses if each.role == "quasi_identifier" and each.kind == "numeric"]
    lines = ["[table]    # to protect a table with microguard adjust, remove the # of these lines"]
    lines.append(f"value = {quoted(numeric[0])}" if numeric else 'kind = "frequency"')
    if any(each.role == "weight" for each in guesses):
        lines.append("weighted = true")
    lines.append(
        f"tables = [{_listed([chain[-1] for chain in chains])}]    # the finest column of each dimension"
    )
    nested = [_listed(chain) for chain in chains if len(chain) > 1]
    if nested:
        lines.append(f"hierarchies = [{', '.join(nested)}]    # coarse to fine: these codes are nested")
    if numeric:
        lines.append("p_percent = 10")
    lines.append(f"# minimum_frequency = {k}    # default: release.k")
    return "\n".join(f"# {line}" if not line.startswith("#") else line for line in lines)


def _is_category(guess: Guess) -> bool:
    """Return whether a column can be a dimension; this includes a level of a code that the draft of records
    leaves out.
    """
    chosen = guess.alternative if guess.reading == "derived" and guess.alternative is not None else guess
    return chosen.role in ("quasi_identifier", "other") and chosen.kind == "nominal"


def _chains(profile: Profile, columns: Sequence[Column]) -> list[list[Column]]:
    """Arrange columns in chains from coarse to fine, in which each column is nested in the previous one."""
    chains: list[list[Column]] = []
    for column in sorted(columns, key=lambda each: each.distinct):
        classes = profile.classes([column], K)[0]
        fitting = [
            chain
            for chain in chains
            if chain[-1].distinct < column.distinct and profile.classes([chain[-1], column], K)[0] == classes
        ]
        if fitting:
            max(fitting, key=lambda chain: (len(chain), chain[-1].distinct)).append(column)
        else:
            chains.append([column])
    return chains


def _listed(columns: Sequence[Column]) -> str:
    return f"[{', '.join(quoted(column.name) for column in columns)}]"


def quoted(text: str) -> str:
    """Return a TOML basic string, which is a JSON string in which DEL is escaped, too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def shown(name: str) -> str:
    """Return the name of a column for use in a comment; a line break in it is replaced, because it would end
    the comment.
    """
    return quoted(name)[1:-1]


def toml_key(name: str) -> str:
    """Return the name of a column in the form of a TOML key."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else quoted(name)
