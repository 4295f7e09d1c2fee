"""Decode the columns whose values are names of folders, as in Hive (``region=north``)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import unquote, unquote_to_bytes, urlsplit

from microguard.pipelines.engine.column_names import column
from microguard.schemas.errors import InputRejected
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

#: Escaped byte that is not ASCII, as pyarrow, pandas, Polars and DuckDB write it.
_ESCAPED = re.compile("%[89A-Fa-f][0-9A-Fa-f]")
#: Names of a path from the first one with a wildcard on.
_PATTERN = re.compile(r"/[^/]*[*?\[{]")


def decode_folder_names(frame: DataFrame, files: Sequence[str], path: str, named: str) -> DataFrame:
    """Return the frame with columns of folder names decoded as UTF-8, if another program escaped them.

    Hive and Spark escape only ASCII characters. Other programs escape the bytes of UTF-8, which Spark decodes
    one by one ("Ã¼" for "ü").

    Parameters
    ----------
    files : sequence of str
        Addresses of the files, as Spark lists them.
    path : str
        Path or pattern of the input. Folders above it contain no values.
    named : str
        The input, in messages.

    Raises
    ------
    InputRejected
        If a name is not UTF-8, or has escaped and plain characters that are not ASCII.
    """
    root = _PATTERN.split(urlsplit(path).path)[0].rstrip("/")
    below = (unquote(urlsplit(file).path).removeprefix(root) for file in files)
    parts = {part for file in below for part in file.split("/")[:-1] if "=" in part}
    folders = [part for part in parts if part.partition("=")[0] in frame.columns]
    names = {part.partition("=")[0] for part in folders if _ESCAPED.search(part)}
    if not names:
        return frame
    wrong = sum(not part.isascii() or not _is_utf8(unquote_to_bytes(part)) for part in folders)
    if wrong:
        raise InputRejected(
            f"{named} has {wrong} folder(s) whose names are escaped in another way than those next to them, "
            "expected names that one program wrote in UTF-8. Write the folders again with one program."
        )
    columns = [
        f.decode(f.encode(column(name), "ISO-8859-1"), "UTF-8").alias(name) if name in names else column(name)
        for name in frame.columns
    ]
    return frame.select(*columns)


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
