"""CSV files that describe the codes of a variable: hierarchies and cost matrices."""

from __future__ import annotations

import csv

from microguard.schemas.errors import SpecificationError

DELIMITERS = (",", ";", "\t", "|")


def code_rows(path: str, key: str, expected: str) -> list[list[str]]:
    """Return the non-empty lines of a file; the header comes first.

    Parameters
    ----------
    key : str
        Key of the specification, for messages.
    expected : str
        Expected content of the file: the end of the sentence "Give a CSV in UTF-8 with".

    Raises
    ------
    SpecificationError
        If the file cannot be read.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as stream:
            head = stream.readline()
            stream.seek(0)
            return [row for row in csv.reader(stream, delimiter=max(DELIMITERS, key=head.count)) if row]
    except (OSError, UnicodeDecodeError, csv.Error):
        raise SpecificationError(
            f"{key}: the file cannot be read. Use a CSV in UTF-8 with {expected}."
        ) from None
