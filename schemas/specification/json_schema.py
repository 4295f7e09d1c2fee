"""The published JSON schema of the specification, for editors that complete and check TOML.

`python -m schemas.specification.json_schema` writes it anew; a test holds it against the models.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

from schemas.specification.model import Specification

PUBLISHED = Path(__file__).parents[1] / "specification.schema.json"


def json_schema() -> dict[str, Any]:
    """Schema of the whole specification, with the description of each key."""
    schema = Specification.model_json_schema()
    described = {
        key: doc
        for source in ("sections.py", "table.py")
        for key, doc in _descriptions(Path(__file__).with_name(source).read_text(encoding="utf-8")).items()
    }
    for name, definition in schema["$defs"].items():
        for key, entry in definition.get("properties", {}).items():
            text = described.get((name, key))
            if text is not None:
                entry["description"] = text
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "microguard release specification",
    }
    return head | {key: value for key, value in schema.items() if key != "title"}


def text() -> str:
    """The schema as the published file holds it."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def _descriptions(source: str) -> dict[tuple[str, str], str]:
    """The string that follows each field of each model, by model and field."""
    found = {}
    for model in ast.parse(source).body:
        if isinstance(model, ast.ClassDef):
            for field, doc in zip(model.body, model.body[1:], strict=False):
                if (
                    isinstance(field, ast.AnnAssign)
                    and isinstance(field.target, ast.Name)
                    and isinstance(doc, ast.Expr)
                    and isinstance(doc.value, ast.Constant)
                ):
                    found[model.name, field.target.id] = str(doc.value.value)
    return found


if __name__ == "__main__":
    PUBLISHED.write_text(text(), encoding="utf-8")
