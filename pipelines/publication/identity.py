"""What a release is made from: its id is a keyed hash of this."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from pipelines.intake.screen import ScreenedInput
from schemas.specification.model import Specification


def identity(screened: ScreenedInput, specification: Specification, content: str) -> dict[str, Any]:
    """What decides the answer of a run.

    Parameters
    ----------
    content : str
        ``records`` or ``table``: what is made from the input.
    """
    return {
        "content": content,
        "fingerprint": screened.fingerprint,
        "specification": _made_from(specification),
        "seed": specification.release.seed,
        "version": version("microguard"),
    }


def _made_from(specification: Specification) -> dict[str, Any]:
    """The specification without where the files lie and what is only permitted."""
    content = specification.model_dump(mode="json")
    content["input"].pop("path")
    content["publish"] = {"disclose": content["publish"]["disclose"], "format": content["publish"]["format"]}
    return content
