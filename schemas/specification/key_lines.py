"""Line numbers of the sections and keys of a TOML file, for messages; `tomllib` does not return them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from microguard.schemas.specification.faults import Path

_PART = r"(?:[A-Za-z0-9_-]+|\"(?:[^\"\\]|\\.)*\"|'[^']*')"
_KEY = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER = re.compile(rf"\s*(?P<open>\[\[?)\s*(?P<key>{_KEY})\s*\]")
_ENTRY = re.compile(rf"\s*(?P<key>{_KEY})\s*=")
#: Tokens by which the end of a value is recognised: strings, comments, brackets.
_TOKEN = re.compile(
    r"\"\"\"(?:[^\\]|\\.)*?(?P<basic>\"\"\"|\Z)|'''.*?(?P<literal>'''|\Z)"
    r"|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|\#[^\n]*|(?P<opens>[\[{])|(?P<closes>[\]}])",
    re.DOTALL,
)


def key_lines(text: str) -> dict[Path, int]:
    """Return the line number of each section and key; keys inside a value have the line of the value."""
    lines: dict[Path, int] = {}
    section: Path = ()
    tables: dict[Path, int] = {}
    value = ""
    for number, line in enumerate(text.splitlines(), start=1):
        header = None if value else _HEADER.match(line)
        entry = None if value or header else _ENTRY.match(line)
        if header is not None:
            section = _parts(header["key"])
            if header["open"] == "[[":
                tables[section] = tables.get(section, -1) + 1
                section = (*section, tables[section])
            lines.setdefault(section, number)
        elif entry is not None:
            lines.setdefault((*section, *_parts(entry["key"])), number)
            value = line[entry.end() :] + "\n"
        elif value:
            value += line + "\n"
        if value and _is_complete(value):
            value = ""
    return lines


def line_of(key: Path, lines: Mapping[Path, int]) -> int | None:
    """Return the line number of a key, or of the value or section that contains it; None if the file contains
    neither.
    """
    return next((lines[key[:end]] for end in range(len(key), 0, -1) if key[:end] in lines), None)


def _parts(key: str) -> tuple[str, ...]:
    """Return the parts of a dotted key, without their quotes."""
    parts = []
    for part in re.findall(_PART, key):
        if part.startswith('"'):
            try:
                part = json.loads(part)
            except ValueError:  # an escape sequence that JSON does not have
                part = part[1:-1]
        parts.append(part.strip("'"))
    return tuple(parts)


def _is_complete(value: str) -> bool:
    """Return whether the text after "=" is a complete value: every string and bracket is closed."""
    depth = 0
    for token in _TOKEN.finditer(value):
        text = token.group()
        if text.startswith(('"""', "'''")) and not (token["basic"] or token["literal"]):
            return False
        depth += bool(token["opens"]) - bool(token["closes"])
    return depth <= 0
