"""Recognise the format of an input that a specification does not state, by its suffix and its first bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_TEXT = ("csv", "tsv", "txt", "tab")


def with_format(content: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return parsed TOML with `input.format`, if it is not stated and the input is text.

    A suffix of text files is a CSV. A local file without such a suffix is one unless it begins as Parquet
    does. Fields of a `.tsv` are separated by tabs.

    Parameters
    ----------
    content : dict
        Parsed TOML, which may be faulty.
    folder : Path
        Folder of the specification.
    """
    given = content.get("input")
    if not isinstance(given, dict) or "format" in given or not isinstance(given.get("path"), str):
        return content
    suffix = given["path"].lower().removesuffix(".gz").rpartition(".")[2]
    if suffix not in _TEXT and not (suffix != "parquet" and _is_text(folder, given["path"])):
        return content
    found = {"format": "csv"} | ({"delimiter": "\t"} if suffix == "tsv" and "delimiter" not in given else {})
    return content | {"input": given | found}


def _is_text(folder: Path, path: str) -> bool:
    """Return whether a local file begins with text."""
    if "\0" in path or "://" in path:
        return False
    try:
        place = folder / Path(path).expanduser()
        if not place.is_file():
            return False
        with open(place, "rb") as stream:
            begin = stream.read(512)
    except (OSError, RuntimeError):
        return False
    return bool(begin) and not begin.startswith(b"PAR1") and not any(byte < 9 for byte in begin)
