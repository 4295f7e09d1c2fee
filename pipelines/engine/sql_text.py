"""Names and texts in a query of SQL, whatever stands in them."""

from __future__ import annotations


def quoted_name(name: str) -> str:
    """A column's name."""
    return '"' + name.replace('"', '""') + '"'


def quoted_text(text: str) -> str:
    """A text as a literal."""
    return "'" + text.replace("'", "''") + "'"
