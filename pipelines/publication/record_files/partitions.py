"""Partitions: one folder of record files for each region, with names as in Hive (``region=north``).

The files do not have the region as a column, because pandas and pyarrow cannot read a dataset that has a
column twice. Hive, Spark, DuckDB, pandas, pyarrow and Polars read the region from the folder name and infer
its type. Values that any of these programs would misread are refused: text like a number, a date, a truth
value or a missing value (in tests all of them read "007" as 7, and DuckDB reads "epoch" as a date), and
numbers that a program reads as text.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from pathlib import PurePosixPath
from urllib.parse import unquote

import pyarrow as pa
from microguard.schemas.errors import InputRejected

#: Maximum number of bytes of a name in a file system.
LONGEST_NAME = 255
#: pyarrow reads larger integers as text.
LARGEST_NUMBER = 2**31
#: Text that has a digit and no letters other than these may be a number, a date or a time.
_OF_NUMBERS = frozenset("defltxz")
_HEXADECIMAL = re.compile(r"[+-]?0x[0-9a-f]+l?", re.IGNORECASE)
_WORDS = frozenset({"nan", "inf", "infinity", "true", "false", "epoch", "null", "__hive_default_partition__"})


def partition_folder(column: str, value: str | int) -> str:
    """Return the name of the folder of a region.

    ASCII characters other than letters, digits, ``_``, ``-`` and ``.`` are escaped as in Hive. Other
    characters are not escaped, because Spark decodes bytes one by one.
    """
    return f"{column}={''.join(map(_escaped, str(value)))}"


def partition_of(path: str) -> dict[str, str]:
    """Return the columns in the folder names of a path, with their values as text."""
    pairs = [part.partition("=") for part in PurePosixPath(path).parent.parts]
    return {column: unquote(value) for column, sign, value in pairs if sign}


def partition_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the type of a region column that readers infer from folder names; None for other types."""
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    text = pa.types.is_string(plain) or pa.types.is_large_string(plain)
    return plain if text or pa.types.is_integer(plain) else None


def require_partitions(column: str, values: Iterable[str | int | None]) -> None:
    """Refuse regions that readers would misread, or whose folder names coincide on some file systems.

    Parameters
    ----------
    column : str
    values : iterable
        The distinct regions.

    Raises
    ------
    InputRejected
    """
    regions = list(values)
    names = Counter(unicodedata.normalize("NFC", str(each)).casefold() for each in regions)
    wrong = sum(
        _misread(each)
        or names[unicodedata.normalize("NFC", str(each)).casefold()] > 1
        or len(partition_folder(column, each or "").encode()) > LONGEST_NAME
        for each in regions
    )
    if wrong:
        raise InputRejected(
            f"[publish] partition_by: expected values of {column} that readers can take from the name of a "
            f"folder, found that {wrong} of {len(regions)} values of {column} would be misread. Text such "
            "as 007, 2026-01-01, true or an empty text is read as another type, and some file systems do "
            "not distinguish Aa and aa. Put a letter before such codes (R007), or omit the key."
        )


def _escaped(character: str) -> str:
    plain = not character.isascii() or character.isalnum() or character in "_-."
    return character if plain else f"%{ord(character):02X}"


def _misread(value: str | int | None) -> bool:
    if not isinstance(value, str):
        return value is None or not -LARGEST_NUMBER <= value < LARGEST_NUMBER
    text = value.strip().casefold()
    letters = {character for character in text if character.isalpha()}
    like_number = any(map(str.isnumeric, text)) and letters <= _OF_NUMBERS
    return (
        not text
        or "\0" in text
        or like_number
        or text.lstrip("+-") in _WORDS
        or _HEXADECIMAL.fullmatch(text) is not None
    )
