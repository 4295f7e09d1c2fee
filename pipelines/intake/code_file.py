"""A CSV that says something of the codes of a variable: its hierarchy, or what mismatches cost."""

from __future__ import annotations

import csv

from microguard.schemas.errors import SpecificationError

DELIMITERS = (",", ";", "\t", "|")


def code_rows(path: str, key: str, expected: str) -> list[list[str]]:
    """Lines that are not empty, the header first.

    Parameters
    ----------
    key : str
        Of the specification, as messages name it.
    expected : str
        What the file should hold, to follow "Give a CSV in UTF-8 with".

    Raises
    ------
    SpecificationError
        Where the file cannot be read.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as stream:
            head = stream.readline()
            stream.seek(0)
            return [row for row in csv.reader(stream, delimiter=max(DELIMITERS, key=head.count)) if row]
    except (OSError, UnicodeDecodeError, csv.Error):
        raise SpecificationError(
            f"{key}: the file cannot be read. Give a CSV in UTF-8 with {expected}."
        ) from None
