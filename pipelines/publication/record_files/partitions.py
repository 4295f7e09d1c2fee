"""Partitions: one folder of record files for each region, named as Hive names them (``region=north``).

The files do not hold the region: pandas and pyarrow read no dataset that has a column twice. Hive, Spark,
DuckDB, pandas, pyarrow and Polars take it from the name of the folder, and guess its type. What any of them
would take for something else is refused: text like a number, a date, a truth value or nothing (tried: "007"
is 7 to all of them, "epoch" a date to DuckDB), and numbers that are text to one of them.
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

#: Bytes of a name in a file system.
LONGEST_NAME = 255
#: Whole numbers beyond are text to pyarrow.
LARGEST_NUMBER = 2**31
#: Without letters beside these, text with a digit may be a number, a date or a time.
_OF_NUMBERS = frozenset("defltxz")
_HEXADECIMAL = re.compile(r"[+-]?0x[0-9a-f]+l?", re.IGNORECASE)
_WORDS = frozenset({"nan", "inf", "infinity", "true", "false", "epoch", "null", "__hive_default_partition__"})


def partition_folder(column: str, value: str | int) -> str:
    """Name of the folder of a region.

    Signs of ASCII other than letters, digits, ``_``, ``-`` and ``.`` are escaped as Hive does; others stay as
    they are, since Spark decodes bytes one by one.
    """
    return f"{column}={''.join(map(_escaped, str(value)))}"


def partition_of(path: str) -> dict[str, str]:
    """The column that the folders of a path name, with its value as text; nothing where none does."""
    pairs = [part.partition("=") for part in PurePosixPath(path).parent.parts]
    return {column: unquote(value) for column, sign, value in pairs if sign}


def partition_type(kind: pa.DataType) -> pa.DataType | None:
    """Type in which a region comes back from the name of a folder; None where it does not."""
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    text = pa.types.is_string(plain) or pa.types.is_large_string(plain)
    return plain if text or pa.types.is_integer(plain) else None


def require_partitions(column: str, values: Iterable[str | int | None]) -> None:
    """Refuse regions that readers would take for something else, or whose folders some disk takes for one.

    Parameters
    ----------
    column : str
    values : iterable
        Each region once.

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
            f"[publish] partition_by: {wrong} of {len(regions)} values of {column} do not come back from the "
            "name of a folder. Readers take text such as 007, 2026-01-01, true or nothing at all for "
            'something else, and some disks take "North" and "north" for one name. Put a letter before such '
            "codes (R007), or leave the key out."
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
