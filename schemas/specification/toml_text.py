"""Parsing of TOML: a file, and the `--set` overrides."""

from __future__ import annotations

import datetime
import re
import tomllib
from pathlib import Path
from typing import Any

from microguard.schemas.errors import SpecificationError
from microguard.schemas.specification.faults import shown_value

SUFFIX = ".toml"
_HEADER = re.compile(r"\s*\[([^\[\]]+)\]")
_SECTION = "The section [{name}] is in the file once, on a line of its own; its keys are on the next lines."
DEEPEST = 20
"""Maximum depth of nested tables and lists; no specification has more than five levels."""


def parsed(path: Path) -> dict[str, Any]:
    """Parse a TOML file; raise SpecificationError if it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SpecificationError(
            f"There is no specification {path}. Correct the path; `microguard draft FILE` writes a first one."
        ) from None
    except IsADirectoryError:
        raise _no_specification(path) from None
    except OSError as error:
        raise SpecificationError(
            f"The specification {path} cannot be read: {error.strerror}. Correct the path or its permissions."
        ) from None
    except UnicodeDecodeError:
        if path.suffix.lower() != SUFFIX:
            raise _no_specification(path) from None
        raise SpecificationError(
            f"The specification {path} is not UTF-8 text, which TOML requires. Save it as UTF-8."
        ) from None
    try:
        return _loaded(text)
    except tomllib.TOMLDecodeError as error:
        if path.suffix.lower() != SUFFIX:  # not shown, because an error message could quote a record
            raise _no_specification(path) from None
        line = re.search(r"at line (\d+)", str(error))
        place = f"{path}:{line[1]}" if line else str(path)
        section = line and _HEADER.match(text.splitlines()[int(line[1]) - 1])
        correct = _SECTION.format(name=section[1]) if section else "Correct this line."
        raise SpecificationError(f"The specification {place} is not valid TOML: {error}. {correct}") from None


def _no_specification(path: Path) -> SpecificationError:
    """Return the error for a specification file that appears to be the input itself."""
    return SpecificationError(
        f"{path} is no specification: expected a TOML file, found a folder or a file of another format. For "
        f"records or a finished table, `microguard draft {path} > release.toml` writes a first "
        "specification."
    )


def _loaded(text: str) -> dict[str, Any]:
    """Parse TOML text; raise TOMLDecodeError if the text is not usable."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:
        raise tomllib.TOMLDecodeError("a number has too many digits") from None
    except RecursionError:
        raise tomllib.TOMLDecodeError("lists are nested too deeply") from None
    level: list[Any] = [content]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _inside(outer)]
    if level:
        raise tomllib.TOMLDecodeError("tables are nested too deeply")
    return content


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def parsed_override(override: str) -> dict[str, Any]:
    """Parse `method.effort=fast` as nested tables.

    A value that is not valid TOML, or is a date, is treated as text.
    """
    key, equals, value = override.partition("=")
    for written in (value, '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'):
        try:
            content = _loaded(f"{key} = {written}")
        except tomllib.TOMLDecodeError:
            continue
        if equals and key.strip() and "\n" not in override and not _has_date(content):
            return content
    raise SpecificationError(
        f"--set: found {shown_value(override)}, expected section.key=value, for example --set "
        "method.effort=fast. Quote a text with blanks: --set 'release.name=\"two words\"'."
    )


def _has_date(content: Any) -> bool:
    if isinstance(content, dict):
        return any(map(_has_date, content.values()))
    return isinstance(content, datetime.date | datetime.time)


def merged(content: dict[str, Any], override: dict[str, Any]) -> dict[str, Any]:
    """Merge tables key by key; any other value replaces the earlier one.

    The line of a variable is merged key by key too.
    """
    result = dict(content)
    for key, value in override.items():
        old = result.get(key)
        result[key] = merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result
