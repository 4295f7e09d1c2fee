"""Guessed role and kind of a column, with its confidence, its reason and an alternative."""

from __future__ import annotations

from dataclasses import dataclass

from microguard.pipelines.drafting.column import Column

SURE, LIKELY, UNSURE = "sure", "likely", "unsure"


@dataclass(frozen=True)
class Alternative:
    """Alternative role and kind of a column, the condition under which it applies, and its recode as TOML."""

    role: str
    kind: str | None
    when: str
    recode: str = ""


@dataclass(frozen=True)
class Guess:
    """The guessed role and kind of a column.

    Attributes
    ----------
    name, role, kind : str
    why : str
        The reason. It contains no value of the file.
    column : Column or None
        None if the column cannot be profiled.
    reading : str
        Class of the column in `evidence.READINGS`; several roles may fit one class.
    confidence : str
        "sure", "likely" or "unsure".
    alternative : Alternative or None
        Alternative that the user may choose.
    dependent : bool
        Whether the column is published although it determines a protected variable.
    """

    name: str
    role: str
    kind: str | None
    why: str
    column: Column | None = None
    reading: str = ""
    confidence: str = LIKELY
    alternative: Alternative | None = None
    dependent: bool = False
