"""Solved blocks in the staging area, with which a run resumes after a killed run."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from microguard.pipelines.engine.versions import deciding_versions
from microguard.pipelines.publication.staging.staging_area import StagingArea
from microguard.pipelines.records.block_config import BlockConfig
from microguard.pipelines.records.points import Points
from microguard.sdc.clusters.diversity import Diversity


@dataclass(frozen=True)
class FinishedBlock:
    """File of one solved block, named by a hash of everything that its labels depend on.

    Attributes
    ----------
    place : StagingArea
    name : str
    records, k : int
    diversity : Diversity or None
        A file is accepted only if it has a clustering of this number of records into diverse clusters of at
        least k.
    """

    place: StagingArea
    name: str
    records: int
    k: int
    diversity: Diversity | None

    @classmethod
    def of(
        cls, points: Points, diversity: Diversity | None, seed: int, block: int, task: BlockConfig
    ) -> FinishedBlock | None:
        """Return the file of a block; None if the run stores no such files."""
        if task.resume is None:
            return None
        content = hashlib.blake2b(np.ascontiguousarray(points.values).tobytes(), digest_size=16)
        content.update(points.mismatches.tobytes())
        if points.record_weights is not None:
            content.update(points.record_weights.tobytes())
        if diversity is not None:
            content.update(diversity.codes.tobytes())
            content.update(diversity.least.tobytes())
            content.update(diversity.known.tobytes())
        method = (task.effort, task.algorithm, task.parameters)
        asked = (task.k, seed, *method, points.values.shape, task.share(len(points)), deciding_versions())
        content.update(repr(asked).encode())
        place, folder = task.resume
        return cls(place, f"{folder}/{block}-{content.hexdigest()}.npz", len(points), task.k, diversity)

    def read(self) -> tuple[np.ndarray, dict[str, Any]] | None:
        """Return labels and certificate; None if no earlier run left a valid file."""
        try:
            with self.place.open(self.name) as file, np.load(file, allow_pickle=False) as archive:
                labels, certificate = archive["labels"], dict(json.loads(str(archive["certificate"])))
        # the file is missing or damaged (which raises errors of any type), so the block is solved again
        except Exception:
            return None
        sound = labels.shape == (self.records,) and np.unique(labels, return_counts=True)[1].min() >= self.k
        if not sound or (self.diversity is not None and not self.diversity.held(labels)):
            return None
        return labels, certificate | {"resumed": True}

    def write(self, labels: np.ndarray, certificate: dict[str, Any]) -> None:
        """Write labels and certificate atomically."""
        codes, text = labels.astype(np.int32), json.dumps(certificate)
        self.place.save(self.name, lambda file: np.savez(file, labels=codes, certificate=text))
