"""Draft a `[table]` for a file of records: its hierarchies, two dimensions and a value, all commented out."""

from __future__ import annotations

import json
from collections.abc import Sequence

from microguard.pipelines.drafting.classify_column import Guess
from microguard.pipelines.drafting.counting import K
from microguard.pipelines.drafting.profile import Column, Profile

MOST_COLUMNS = 12
"""Columns among which nesting is looked for; each pair costs a pass over the file."""
DIMENSIONS = 2
"""Dimensions of the drafted table: what a page can show."""


def draft_table(profile: Profile, guesses: Sequence[Guess], k: int) -> str:
    """The section as comments that a person may remove the marks of; nothing where there is no category."""
    categories = [
        each.column
        for each in guesses
        if each.column is not None
        and (each.role == "region" or (each.role == "quasi_identifier" and each.kind == "nominal"))
        and each.column.distinct > 1
    ]
    if not categories:
        return ""
    chains = sorted(_chains(profile, categories[:MOST_COLUMNS]), key=len, reverse=True)[:DIMENSIONS]
    numeric = [each.name for each in guesses if each.role == "quasi_identifier" and each.kind == "numeric"]
    lines = ["[table]    # microguard adjust: remove the marks of these lines to protect a table, too"]
    lines.append(f"value = {quoted(numeric[0])}" if numeric else 'kind = "frequency"')
    if any(each.role == "weight" for each in guesses):
        lines.append("weighted = true")
    lines.append(f"tables = [{_listed([chain[-1] for chain in chains])}]    # the finest column of each")
    nested = [_listed(chain) for chain in chains if len(chain) > 1]
    if nested:
        lines.append(f"hierarchies = [{', '.join(nested)}]    # coarse to fine, as the codes nest here")
    if numeric:
        lines.append("p_percent = 10")
    lines.append(f"# minimum_frequency = {k}    # release.k where it is not given")
    return "\n".join(f"# {line}" if not line.startswith("#") else line for line in lines)


def _chains(profile: Profile, columns: Sequence[Column]) -> list[list[Column]]:
    """Columns in chains from coarse to fine, each nesting in the one before it."""
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
    """A TOML basic string: JSON's, which leaves one control character as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
