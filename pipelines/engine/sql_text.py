"""Quote names and texts for SQL, whatever characters they have."""

from __future__ import annotations


def quoted_name(name: str) -> str:
    """Quote the name of a column."""
    return '"' + name.replace('"', '""') + '"'


def quoted_text(text: str) -> str:
    """Quote a text as a literal."""
    return "'" + text.replace("'", "''") + "'"
