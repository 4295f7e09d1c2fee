"""Add metadata files (descriptors) for readers to a verified release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from microguard.pipelines.description.describe import describe
from microguard.pipelines.engine.files import checksum
from microguard.pipelines.publication.stage import StagedFiles


def add_descriptors(staged: StagedFiles, manifest: Mapping[str, Any]) -> StagedFiles:
    """Write descriptors from the staged files and the manifest alone; return the files including them.

    Data files keep the checksums under which they were verified, so that a file that changed since is not
    published.
    """
    names = describe(staged.folder, manifest, staged.checksums)
    fresh = {name: checksum(staged.folder / name) for name in names}
    return replace(staged, checksums={**staged.checksums, **fresh})
