"""Reference of the specification in `schemas/README.md`, written from the models.

`python -m microguard.schemas.specification.reference` writes the reference below a mark in the file. A test
compares the reference with the models.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from microguard.schemas.method_registry import BUILT_IN
from microguard.schemas.methods import ALGORITHMS, REPRESENTATIVES
from microguard.schemas.specification.json_schema import json_schema
from microguard.schemas.specification.parameters import parameters_schema

README = Path(__file__).parents[1] / "README.md"
MARK = "<!-- Below this line: written by `python -m microguard.schemas.specification.reference`. -->"
_SECTIONS = {"variables": "one line each, `name = { ... }`", "groups": "`[[groups]]`, one table each"}


def text() -> str:
    """Return the page: the handwritten text above the mark, followed by the reference."""
    written = README.read_text(encoding="utf-8").partition(MARK)[0]
    return (
        written + MARK + "\n\n" + "\n".join([*_reference(), *_method_parameters(), *_capabilities()]) + "\n"
    )


def _reference() -> Iterator[str]:
    schema = json_schema()
    definitions = schema["$defs"]
    for name, entry in schema["properties"].items():
        required = " (required)" if name in schema["required"] else ""
        yield f"### `[{name}]`{required}\n\n{_sentence(entry)}{_form(name)}\n"
        model = _model_of(entry)
        if model is not None:
            yield from _keys(definitions[model], definitions, (name,))


def _form(name: str) -> str:
    return f" ({_SECTIONS[name]})" if name in _SECTIONS else ""


def _keys(model: dict[str, Any], definitions: dict[str, Any], section: tuple[str, ...]) -> Iterator[str]:
    inner: list[tuple[str, str]] = []
    yield "| key | values | default | |\n|---|---|---|---|"
    for name, entry in model["properties"].items():
        within = _model_of(entry)
        if within is not None:
            inner.append((name, within))
        default = "required" if name in model.get("required", ()) else _shown(entry.get("default"))
        values = "a table, see below" if within else _values(entry)
        yield f"| `{name}` | {values} | {default} | {_sentence(entry)} |"
    yield ""
    for name, within in inner:
        yield f"#### `{'.'.join((*section, name))}`\n"
        yield from _keys(definitions[within], definitions, (*section, name))


def _model_of(entry: dict[str, Any]) -> str | None:
    """Return the name of the model that is the type of a key, or of the elements of its list or table."""
    for part in (entry, *entry.get("anyOf", ()), entry.get("items", {}), entry.get("additionalProperties")):
        if isinstance(part, dict) and "$ref" in part:
            return str(part["$ref"]).rpartition("/")[2]
    return None


def _values(entry: dict[str, Any]) -> str:
    if "anyOf" in entry:
        return " or ".join(_values(part) for part in entry["anyOf"] if part.get("type") != "null")
    if "enum" in entry:
        return ", ".join(f"`{value}`" for value in entry["enum"])
    if "const" in entry:
        return f"`{entry['const']}`"
    match entry.get("type"):
        case "array" if "prefixItems" in entry:
            return f"list of {', '.join(map(_values, entry['prefixItems']))}"
        case "array":
            return f"list of {_values(entry['items'])}"
        case "object":
            values = entry["additionalProperties"]
            return "table" if values is True else f"table of {_values(values)}"
        case "integer":
            return f"whole number{_limits(entry)}"
        case "number":
            return f"number{_limits(entry)}"
        case "boolean":
            return "`true`, `false`"
    return "text"


def _limits(entry: dict[str, Any]) -> str:
    words = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to", "exclusiveMaximum": "below"}
    limits = [f"{word} {entry[key]:,}" for key, word in words.items() if key in entry and entry[key] < 10**9]
    return f" {' '.join(limits)}" if limits else ""


def _shown(default: Any) -> str:
    if default is None or default == {} or default == []:
        return "none"
    if isinstance(default, dict):
        return "see below"
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _sentence(entry: dict[str, Any]) -> str:
    return " ".join(entry.get("description", "").split()).replace("|", "\\|")


def _method_parameters() -> Iterator[str]:
    yield "### `[method.parameters]`, by method\n"
    for row in BUILT_IN.values():
        if row.content == "records" and row.parameters is not None:
            model = parameters_schema(row)
            yield f'#### `method.name = "{row.name}"`\n'
            yield f"{_sentence(model)} Quasi-identifiers of kind {', '.join(row.kinds)}.\n"
            yield from _keys(model, {}, ())


def _capabilities() -> Iterator[str]:
    yield "### Algorithms and their limits\n"
    yield "A combination that a method does not support is refused when the specification is read. With a"
    yield "weight, `auto` refuses effort exact, because its proofs assume equal weights.\n"
    yield "| strategy | algorithm | efforts | nominal variables | a weight | largest block |"
    yield "|---|---|---|---|---|---|"
    for strategy, rows in ALGORITHMS.items():
        for name, row in rows.items():
            nominal = "yes" if row.nominal else "one numeric variable only" if row.one_variable else "no"
            most = f"{row.max_records:,}" if row.max_records else "by effort"
            heeded = (
                ("yes" if row.record_weights else "no")
                if strategy == "microaggregation"
                else "counts heed none"
            )
            yield f"| {strategy} | `{name}` | {', '.join(row.efforts)} | {nominal} | {heeded} | {most} |"
    yield "\n| kinds of the quasi-identifiers | `method.representative` |\n|---|---|"
    for kinds, representatives in REPRESENTATIVES.items():
        yield f"| {kinds} | {', '.join(f'`{each}`' for each in representatives)} |"


if __name__ == "__main__":
    README.write_text(text(), encoding="utf-8")
