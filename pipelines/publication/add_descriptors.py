"""Add to a verified release what describes it to its readers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from microguard.pipelines.description.describe import describe
from microguard.pipelines.engine.files import checksum
from microguard.pipelines.publication.stage import StagedFiles


def add_descriptors(staged: StagedFiles, manifest: Mapping[str, Any]) -> StagedFiles:
    """The staged files with what describes them, made of them and of the manifest alone.

    The files with data keep the checksums they were verified under: what changed since does not get copied.
    """
    names = describe(staged.folder, manifest, staged.checksums)
    fresh = {name: checksum(staged.folder / name) for name in names}
    return replace(staged, checksums={**staged.checksums, **fresh})
