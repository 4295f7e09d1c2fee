"""Published JSON schema of the specification, for editors that complete and check TOML.

`python -m microguard.schemas.specification.json_schema` writes the file again. A test compares the file with
the models.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from microguard.schemas.specification.model import Specification

PUBLISHED = Path(__file__).parents[1] / "specification.schema.json"


def json_schema() -> dict[str, Any]:
    """Return the schema of the whole specification, with the description of each key."""
    schema = Specification.model_json_schema()
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "microguard release specification",
    }
    return head | {key: value for key, value in schema.items() if key != "title"}


def text() -> str:
    """Return the schema as the text of the published file."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PUBLISHED.write_text(text(), encoding="utf-8")
