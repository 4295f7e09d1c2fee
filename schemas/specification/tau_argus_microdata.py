"""tau-ARGUS metadata (`.rda`) of microdata, with fields at fixed positions (`.asc`) or with a delimiter,
converted to keys of a specification.

| keyword | becomes |
|---|---|
| position and width after a name | `input.positions`; with `<SEPARATOR>`: `input.columns` |
| codes after position and width | missing codes of a number; ordinary codes of a category, as in tau-ARGUS |
| `<RECODEABLE>` | a nominal variable, which `table.tables` may name |
| `<HIERCODELIST>`, `<HIERLEVELS>` | `table.parents`, `table.code_widths` of named dimensions |
| `<NUMERIC>` | a numeric variable, which `table.value` may name; the default if it is the only one |
| `<WEIGHT>` | the role weight; `table.weighted` states whether it is used |
| `<HOLDING>` | `table.holding` |
| `<REQUEST>` | `table.request`; `table.requests` gives the shares of its codes |

References
----------
de Wolf et al. 2014, tau-ARGUS User's Manual 4.1, sections 5.1.1 and 5.1.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from microguard.schemas.specification.tau_argus import (
    KEYS_OF_RECORDS,
    Field,
    parents_of_fields,
    refused,
    whole,
    widths_of_fields,
)

KEYS_OF_CELLS = (
    "contributors",
    "largest",
    "status",
    "costs",
    "lower_protection",
    "upper_protection",
    "shadow",
)
"""Keys of fields that only finished cells have."""


def content_of_microdata(
    head: Mapping[str, str],
    fields: Sequence[Field],
    table: Mapping[str, Any],
    path: Path,
    encoding: str,
) -> dict[str, Any]:
    """Return the sections of a specification that metadata of microdata define.

    Parameters
    ----------
    table : mapping
        The section `[table]` as written in the specification.

    Raises
    ------
    SpecificationError
    """
    of_records = [each.name for each in fields if each.key in KEYS_OF_RECORDS]
    of_cells = [each.name for each in fields if each.key in KEYS_OF_CELLS]
    if of_cells:
        records = ", ".join(of_records) or "fields at fixed places"
        raise refused(
            path,
            (f"has keywords of records ({records}) and of cells ({', '.join(of_cells)}), expected one kind"),
        )
    tables = table.get("tables")
    named = {name for each in tables for name in each} if isinstance(tables, list) else set()
    dimensions = [each for each in fields if each.key == "dimension" and each.name in named]
    values = [each.name for each in fields if each.key == "value"]
    by_key = {each.key: each.name for each in fields}
    described: dict[str, Any] = {
        "source": "microdata",
        "parents": parents_of_fields(dimensions, path, encoding),
        "code_widths": widths_of_fields(dimensions, path),
        "tau_argus": True,
    }
    if len(values) == 1 and table.get("kind") != "frequency":
        described["value"] = values[0]
    if "holding" in by_key:
        described["holding"] = by_key["holding"]
    if "request" in by_key and "requests" in table:
        described["request"] = by_key["request"]
    fixed = "<SEPARATOR>" not in head
    variables = {each.name: _variable(each, 2 if fixed else 1) for each in fields}
    layout: dict[str, Any] = {"format": "csv"}
    if fixed:
        layout["positions"] = {each.name: _position(each, path) for each in fields}
    else:
        layout |= {"columns": [each.name for each in fields], "delimiter": head["<SEPARATOR>"]}
    return {"input": layout, "variables": variables, "table": described}


def _variable(field: Field, place: int) -> dict[str, Any]:
    """Return the role and kind of a variable; codes for missing values follow the numbers of its position."""
    if field.key == "weight":  # every record must have this field
        return {"role": "weight"}
    numeric = field.key == "value"
    missing = [number for code in field.numbers[place:] if (number := _number(code)) is not None]
    described = {"role": "other", "kind": "numeric" if numeric else "nominal"}
    return described | ({"missing": missing} if numeric and missing else {})


def _number(code: str) -> int | float | None:
    """Return the code for a missing number as a number; None if it is not a number."""
    try:
        return int(code)
    except ValueError:
        pass
    try:
        return float(code.replace(",", "."))
    except ValueError:
        return None


def _position(field: Field, path: Path) -> list[int]:
    if len(field.numbers) < 2:
        raise refused(path, f"does not state the first character and the width of {field.name}")
    return [whole(each, path, f"a first character and width of {field.name}") for each in field.numbers[:2]]
