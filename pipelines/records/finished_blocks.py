"""Clusters of the blocks that are solved, in a private folder: a run that died goes on where it was."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.records.clustering_task import ClusteringTask
from pipelines.records.points import Points


@dataclass(frozen=True)
class FinishedBlock:
    """The file of one block, named by everything that its labels depend on.

    Attributes
    ----------
    path : Path
    records, k : int
        What is read is believed where it is a clustering of so many records, k or more in each cluster.
    """

    path: Path
    records: int
    k: int

    @classmethod
    def of(cls, points: Points, seed: int, block: int, task: ClusteringTask) -> FinishedBlock | None:
        """The file of a block; None where no folder is one that every task can write to."""
        if task.resume is None:
            return None
        content = hashlib.blake2b(np.ascontiguousarray(points.values).tobytes(), digest_size=16)
        content.update(points.mismatches.tobytes())
        if points.record_weights is not None:
            content.update(points.record_weights.tobytes())
        method = (task.effort, task.algorithm, sorted(task.parameters.items()))
        asked = (task.k, seed, *method, points.values.shape)
        content.update(repr(asked).encode())
        return cls(Path(task.resume) / f"{block}-{content.hexdigest()}.npz", len(points), task.k)

    def read(self) -> tuple[np.ndarray, dict[str, Any]] | None:
        """Labels and certificate; None where an earlier run left nothing that can be believed."""
        if not self.path.is_file():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as archive:
                labels, certificate = archive["labels"], dict(json.loads(str(archive["certificate"])))
        except Exception:  # a damaged archive raises anything; the block is solved anew
            return None
        sound = labels.shape == (self.records,) and np.unique(labels, return_counts=True)[1].min() >= self.k
        return (labels, certificate | {"resumed": True}) if sound else None

    def write(self, labels: np.ndarray, certificate: dict[str, Any]) -> None:
        """Keep labels and certificate, in one step."""
        fresh = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        with open(fresh, "wb") as file:
            np.savez(file, labels=labels.astype(np.int32), certificate=json.dumps(certificate))
        fresh.replace(self.path)
