"""Quote names and texts with any characters for SQL."""

from __future__ import annotations


def quoted_name(name: str) -> str:
    """Quote the name of a column."""
    return '"' + name.replace('"', '""') + '"'


def quoted_text(text: str) -> str:
    """Quote a text as a literal."""
    return "'" + text.replace("'", "''") + "'"
