"""What a run is and says of itself: what its release is made from, and its answer."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from pipelines.engine.outcome import Outcome, now
from pipelines.intake.screen import ScreenedInput
from pipelines.publication.areas import Areas
from schemas.specification.model import Specification


def identity(screened: ScreenedInput, specification: Specification) -> dict[str, Any]:
    """What a release is made from: its id is a keyed hash of this."""
    return {
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


def description(
    screened: ScreenedInput, specification: Specification, areas: Areas, release_id: str
) -> dict[str, Any]:
    """The section ``release`` of the evidence."""
    return {
        "release_id": release_id,
        "name": specification.release.name,
        "version": version("microguard"),
        "at": now(),
        "public_area": str(areas.public),
        "k": specification.release.k,
        "seed": specification.release.seed,
        "fingerprint": screened.fingerprint,
        "specification": specification.model_dump(mode="json"),
    }


def answer(areas: Areas, release_id: str, text: str) -> Outcome:
    """What a run that ended well says."""
    public, report = areas.release(release_id), areas.record(release_id) / "report.html"
    content: dict[str, Any] = {
        "release_id": release_id,
        "release": str(public),
        "report": str(report),
    }
    return Outcome(f"{text}.\nRelease: {public}\nReport: {report}", content)
