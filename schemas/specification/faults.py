"""Faults of a specification: each names the key, the value found and the values allowed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, is_dataclass
from difflib import get_close_matches
from typing import Any, get_args, get_type_hints

from pydantic import BaseModel, ValidationError

Path = tuple[str | int, ...]
"""Key names from the top of the specification down to a value."""

TYPE_NAMES = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "text in quotes",
    "tuple_type": "a list in brackets",
    "list_type": "a list in brackets",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "dataclass_type": "a table",
}
NOTHING = object()
NOT_APPLICABLE = "not applicable"
"""First words of `allowed` in `fault` if a key exists but cannot be used here."""
LONGEST_SHOWN = 80
"""Maximum number of characters of a key or value in a message, which is enough to recognise it."""
LONGEST_WORD = 4096
"""Maximum number of characters of a word in a message, the longest path that the system allows."""


@dataclass(frozen=True)
class Fault:
    """One fault of a specification.

    Attributes
    ----------
    key : tuple of str or int
        Path of the key in the specification.
    text : str
        "[method] effort: found "fats", allowed: fast, standard, thorough, exact (did you mean "fast"?)"
    """

    key: Path
    text: str


def fault(key: Path, entry: Any, allowed: str, *, choices: Iterable[str] = ()) -> Fault:
    """Return a fault at `key`; for a misspelt name, the nearest of `choices` is proposed."""
    if allowed.startswith(NOT_APPLICABLE):
        found = "" if entry is NOTHING else f"found {shown_value(entry)}, but "
        return Fault(key, f"{shown_key(key)}: {found}this key is {allowed}; remove it")
    text = f"{shown_key(key)}: found {shown_value(entry)}, allowed: {allowed}"
    return Fault(key, text + _did_you_mean(entry, choices))


def moved(found: Fault, section: str) -> Fault:
    """Return the fault with the name of its section in front of its key."""
    text = found.text.replace(f"{shown_key(found.key)}:", f"{shown_key((section, *found.key))}:", 1)
    return Fault((section, *found.key), text)


def unknown_key(key: Path, known: Iterable[str]) -> Fault:
    """Return the fault of a key that does not exist; the nearest existing keys are proposed."""
    known = tuple(known)
    near = _did_you_mean(key[-1], known)
    return Fault(key, f"{shown_key(key)}: unknown key" + (near or f", allowed: {', '.join(known)}"))


def legible(text: str) -> str:
    """Return the text without control characters, with words cut to the length of a path."""
    words = ["".join(map(_printable, word)) for word in text.split(" ")]
    return " ".join(_shortened(word, LONGEST_WORD) for word in words)


def _printable(character: str) -> str:
    return character if character.isprintable() else f"\\u{ord(character):04x}"


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def shown_key(key: Path) -> str:
    """Return a key as in the file: `("method", "effort")` as `[method] effort`."""
    names = [
        str(part + 1) if isinstance(part, int) else _shortened(legible(part), LONGEST_SHOWN) for part in key
    ]
    if len(names) < 2:
        return f"[{names[0]}]" if names else "the specification"
    if names[0] == "groups":
        return f"[[groups]] {' '.join(names[1:])}"
    return f"[{names[0]}] {'.'.join(names[1:])}"


def shown_value(value: Any) -> str:
    """Return a value as TOML text, shortened."""
    if value is NOTHING:
        return "nothing"
    try:
        text = json.dumps(value, ensure_ascii=False)
    except TypeError:
        text = str(value)
    except (ValueError, RecursionError):  # too many digits, or too deeply nested tables
        return "a number with very many digits, or very deeply nested tables"
    return _shortened(legible(text), LONGEST_SHOWN)


def by_dimension(bounds: dict[int, float]) -> dict[str, float]:
    """Return bounds by table dimension with text keys, as in TOML."""
    return {str(dimension): bound for dimension, bound in bounds.items()}


def _did_you_mean(entry: Any, choices: Iterable[str]) -> str:
    if not isinstance(entry, str) or len(entry) > LONGEST_SHOWN:
        return ""
    close = get_close_matches(entry, list(choices), n=1, cutoff=0.5)
    return f' (did you mean "{close[0]}"?)' if close else ""


def faults_of(error: ValidationError, model: type[BaseModel]) -> list[Fault]:
    """Translate the errors of pydantic into faults.

    Each type of error that the models can raise has an entry.
    """
    faults: dict[Path, Fault] = {}
    for item in error.errors(include_url=False):
        key: Path = tuple(item["loc"])
        if key and key[-1] == "[key]":
            key = key[:-1]
        faults.setdefault(key, _translated(key, item, model))
    return list(faults.values())


def _translated(key: Path, item: Any, model: type[BaseModel]) -> Fault:
    kind, context = item["type"], item.get("ctx", {})
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return unknown_key(key, _fields_of(_model_at(model, key[:-1])))
    if kind == "missing":
        return fault(key, NOTHING, "a value, because this key has no default")
    if kind == "literal_error":
        choices = re.findall(r"'([^']*)'", context["expected"])
        return fault(key, item["input"], ", ".join(choices), choices=choices)
    if kind in TYPE_NAMES:
        return fault(key, item["input"], TYPE_NAMES[kind])
    if kind == "value_error":
        return _refused(key, item["input"], context["error"])
    if kind == "string_pattern_mismatch":
        return fault(
            key, item["input"], 'at most 100 letters, digits, "_", "." and "-", without folder separators'
        )
    return fault(key, item["input"], _limits(kind, context, item["msg"]))


def _limits(kind: str, context: dict[str, Any], message: str) -> str:
    match kind:
        case "greater_than_equal":
            return f"at least {context['ge']}"
        case "greater_than":
            return f"more than {context['gt']}"
        case "less_than_equal":
            return f"at most {context['le']}"
        case "less_than":
            return f"less than {context['lt']}"
        case "string_too_short" | "too_short":
            return "not empty"
        case "multiple_of":
            return f"a multiple of {context['multiple_of']}"
        case "string_too_long":
            return f"at most {context['max_length']} character(s)"
    return message


def _refused(key: Path, entry: Any, error: Exception) -> Fault:
    """Return the fault of a value or section whose validator raised an error."""
    name = getattr(error, "variable", None)
    if name is None:
        return fault(key, getattr(error, "shown", entry), str(error))
    return fault((*key, name), entry.get(name), str(error).partition("expected ")[2].partition(", found")[0])


def _model_at(model: type, key: Path) -> type:
    """Return the model or dataclass that defines the keys below `key`."""
    for part in key:
        fields = _fields_of(model)
        if isinstance(part, str) and part in fields:
            model = _model_in(fields[part]) or model
    return model


def _fields_of(model: type) -> dict[str, Any]:
    """Return the annotation of each field of a model or dataclass."""
    if issubclass(model, BaseModel):
        return {name: field.annotation for name, field in model.model_fields.items()}
    return get_type_hints(model)


def _model_in(annotation: Any) -> type | None:
    if isinstance(annotation, type) and (issubclass(annotation, BaseModel) or is_dataclass(annotation)):
        return annotation
    return next((model for part in get_args(annotation) if (model := _model_in(part))), None)
