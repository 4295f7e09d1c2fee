"""Describe the recodes of a variable in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_WORDS: dict[str, Callable[[Any], str]] = {
    "missing": lambda codes: f"{_listed(codes)} {'counts' if len(codes) == 1 else 'count'} as missing",
    "top_code": lambda limit: f"values above {_plain(limit)} are {_plain(limit)}",
    "bottom_code": lambda limit: f"values below {_plain(limit)} are {_plain(limit)}",
    "round_to": lambda step: f"rounded to multiples of {_plain(step)}",
    "bands": lambda limits: f"bands with the lower limits {_listed(limits)}",
    "hierarchy": lambda name: f"codes of the hierarchy {name}",
    "level": lambda level: f"published at level {level}",
}
"""Map from a key of the specification to the description of its effect."""


def recode_text(recode: Mapping[str, Any]) -> str:
    """Describe one entry of ``recodes`` in the manifest, without naming its variable."""
    return "; ".join(words(recode[key]) for key, words in _WORDS.items() if key in recode)


def _listed(values: Any) -> str:
    return ", ".join(map(_plain, values))


def _plain(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
