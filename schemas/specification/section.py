"""Base class of all sections of a specification, and the types of their values."""

from __future__ import annotations

import re
from datetime import date, datetime
from math import isfinite
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

NAME_PATTERN = r"^\w[\w.-]{0,99}$"
"""Name of a release or group, which is also a folder name: letters, digits, "_", "." and "-"."""

TABLE_PATTERN = r"^\w{1,100}(\.\w{1,100})+$"
"""Table of a catalogue: its namespace and its name, of letters, digits and "_", separated by points."""


BLANKS = " \u00a0\u2007\u2009\u202f"
"""Blanks between thousands: space, and the no-break, figure, thin (SI brochure) and narrow no-break space."""
MINUS = "\u2212"
"""Minus sign used by the locales of Sweden, Norway and Slovenia."""
LARGEST_COUNT = 10**10
"""Maximum number of records, units or releases, above that of any file."""
LARGEST_DIMENSION = 99
"""Maximum dimension of a table; nobody can read a table of a higher one."""
LARGEST_WEIGHT = 10**6
"""Maximum weight of a variable. With larger weights the other variables would have no effect, and squares of
coordinates could overflow."""


def _dimension_keys(value: Any) -> Any:
    """Convert the text keys of a TOML table to table dimensions."""
    if not isinstance(value, dict):
        return value
    if not value or not all(isinstance(key, str) and re.fullmatch("[1-9][0-9]?", key) for key in value):
        raise ValueError("a table of bounds by dimension, such as { 1 = 6, 2 = 9 }")
    return {int(key): bound for key, bound in value.items()}


def _without_nul(value: Any) -> Any:
    if isinstance(value, str) and "\0" in value:
        raise ValueError("a path without the character NUL")
    return value


def _timestamp(value: Any) -> Any:
    """Accept a TOML date-time, or the same as text; return the text."""
    text = value.isoformat() if isinstance(value, date) else value
    try:
        datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise ValueError('a time in ISO 8601, such as "2026-11-01T06:00:00+01:00"') from None
    return text


def _without_credentials(value: Any) -> Any:
    """Refuse an address that contains a password or parameters; the message does not repeat these parts."""
    if isinstance(value, str) and "://" in value:
        place = value.partition("://")[2]
        if "@" in place or "?" in place:
            raise Withheld(f"{value.partition('://')[0]}://...")
    return value


def _table_name(value: Any) -> Any:
    if isinstance(value, str) and not re.fullmatch(TABLE_PATTERN, value):
        raise ValueError('a namespace and a name of letters, digits and "_", such as "statistics.persons"')
    return value


class Withheld(ValueError):
    """A value that contains credentials, which messages must not repeat.

    Parameters
    ----------
    shown : str
        Part of the value that messages may show.
    """

    def __init__(self, shown: str) -> None:
        super().__init__(
            "an address without user, password and parameters, which pyiceberg reads from its own "
            "configuration or the environment"
        )
        self.shown = shown


def _auto_or_count(value: Any) -> Any:
    if value == "auto" or (type(value) is int and 2 <= value <= LARGEST_COUNT):
        return value
    raise ValueError(f'"auto" or a whole number of at least 2 and at most {LARGEST_COUNT:,}')


def _code(value: Any) -> Any:
    if type(value) in (int, str) or (type(value) is float and isfinite(value)):
        return value
    raise ValueError("a number or text")


Code = Annotated[str | int | float, BeforeValidator(_code)]
Count = Annotated[int, Field(le=LARGEST_COUNT)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Bound = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Text = Annotated[str, Field(min_length=1)]
PathText = Annotated[Text, BeforeValidator(_without_nul)]
InputPath = Annotated[str, BeforeValidator(_without_nul)]
Timestamp = Annotated[Text, BeforeValidator(_timestamp)]
CatalogName = Annotated[Text, BeforeValidator(_without_credentials)]
TableName = Annotated[str, Field(pattern=TABLE_PATTERN), BeforeValidator(_table_name)]
SafeName = Annotated[str, Field(pattern=NAME_PATTERN)]
ByDimension = Annotated[dict[int, Bound], BeforeValidator(_dimension_keys)]
AutoOrCount = Annotated[Literal["auto"] | int, BeforeValidator(_auto_or_count)]
Names = Annotated[tuple[Text, ...], Field(strict=False)]


class OneOfOrText:
    """Type: one of microguard's names, which editors propose, or the name of a third party."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"anyOf": [{"enum": list(self.names), "type": "string"}, handler(schema)]}


class OneOf:
    """Type: one of the names in a registry, validated like a `Literal` of them."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.literal_schema(list(self.names))


class Section(BaseModel):
    """A table of the TOML: no unknown keys, no silent conversion, no change after reading."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)


class Acceptable(Section):
    """A section of limits; some of them apply by default and can be accepted by name in its key `accept`."""

    def default_limit(self, name: str) -> float | None:
        """Return an upper limit, or its default; None if a steward accepted by name that it may be exceeded.

        A value looser than the default is an accepted limit, and it is enforced.
        """
        value, default = (
            float(each) for each in (getattr(self, name), type(self).model_fields[name].default)
        )
        return None if value <= default and name in getattr(self, "accept", {}) else value
