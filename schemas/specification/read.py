"""Reading of a release specification from TOML, with one check of all its keys.

`read_specification` returns a checked `Specification`, or raises `SpecificationError` with all faults found.
No other code checks the specification again. Paths are relative to the folder of the specification:
`Specification.resolve` returns absolute ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from microguard.schemas.errors import Failure, SpecificationError
from microguard.schemas.specification.consistency import inconsistencies
from microguard.schemas.specification.faults import Fault, faults_of, shown_key
from microguard.schemas.specification.faults import Path as Key
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.toml_text import merged, parsed, parsed_override
from pydantic import ValidationError

Place = Callable[[Key], str]
_TEXT = ("csv", "tsv", "txt", "tab")
"""Suffixes of text files."""


def read_specification(path: str | Path, overrides: Iterable[str] = ()) -> Specification:
    """Read and check a release specification.

    Parameters
    ----------
    path : str or Path
        The TOML file. Paths in it are relative to its folder.
    overrides : iterable of str
        Texts `section.key=value`, with the value as in TOML or as a bare word. Later overrides take
        precedence.

    Raises
    ------
    SpecificationError
        With every fault of the file and the overrides, one per line.
    """
    path = Path(path)
    content = parsed(path)
    overridden: dict[str, Any] = {}
    for override in overrides:
        overridden = merged(overridden, parsed_override(override))
    folder = path.absolute().parent
    whole = _described(merged(content, overridden), folder)
    return build_specification(whole, folder, str(path), lambda key: _place(key, path, overridden))


def _described(content: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Add the keys derived from tau-ARGUS metadata if the specification names a metadata file."""
    source = content.get("input")
    if not isinstance(source, dict) or "metadata" not in source:
        return content
    from microguard.schemas.specification.tau_argus import described

    return described(content, folder)


def build_specification(
    content: dict[str, Any], folder: Path, name: str = "", place: Place = lambda _: ""
) -> Specification:
    """Check parsed TOML and build the specification.

    Parameters
    ----------
    name : str
        Name of the specification in the error report; by default there is only one specification.
    place : callable
        Function that returns the file and line of a key; called only if there are faults.
    """
    content = _with_format(content, folder)
    faults: list[Fault] = []
    in_doubt = False
    try:
        specification = Specification.model_validate(content)
    except ValidationError as error:
        from microguard.schemas.specification.repair import repaired

        faults = faults_of(error, Specification)
        content, in_doubt = repaired(content, [fault.key for fault in faults])
        try:
            specification = Specification.model_validate(content)
        # the specification cannot be repaired, so the checks between keys are skipped
        except ValidationError:
            raise _report(name, faults, place) from None
    specification._folder = folder
    between = inconsistencies(specification, in_doubt)
    if faults or between:
        from microguard.schemas.specification.repair import related

        faulty = [fault.key for fault in faults]
        faults += [fault for fault in between if not any(related(fault.key, key) for key in faulty)]
        raise _report(name, faults, place)
    return specification


def _place(key: Key, path: Path, overridden: dict[str, Any]) -> str:
    """Return the place of a key: `--set`, or the file and the line number."""
    inside: Any = overridden
    for part in key:
        if not isinstance(inside, dict) or part not in inside:
            break
        inside = inside[part]
    else:
        return "--set"
    from microguard.schemas.specification.key_lines import key_lines, line_of

    line = line_of(key, key_lines(path.read_text(encoding="utf-8-sig")))
    return str(path) if line is None else f"{path}:{line}"


def _report(name: str, faults: list[Fault], place: Place) -> SpecificationError:
    """Return the error with one line for each fault, in the order of the file."""
    once = {fault.text: fault for fault in faults}
    failures = tuple(
        Failure(shown_key(fault.key), text, place=place(fault.key)) for text, fault in once.items()
    )
    lines = [f"  {each.place}: {each.what}" if each.place else f"  {each.what}" for each in failures]
    count = "a fault" if len(lines) == 1 else f"{len(lines)} faults"
    return SpecificationError(
        "\n".join([f"The specification{name and f' {name}'} has {count}.", *lines]), failures
    )


def _with_format(content: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return parsed TOML; `input.format` is added if it is not stated and the input is text.

    A file with a suffix of text files is read as CSV. A local file without such a suffix is read as CSV
    unless it begins like a Parquet file. Fields of a `.tsv` file are separated by tabs.

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
    # the last key names an Iceberg table
    if "\0" in path or "://" in path or path.endswith(".metadata.json"):
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
