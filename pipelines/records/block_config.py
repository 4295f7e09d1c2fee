"""Settings that a task needs to protect a block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from microguard.pipelines.publication.staging.staging_area import StagingArea
from microguard.pipelines.records.blocks import Plan
from microguard.pipelines.records.coordinates import Coordinates
from microguard.pipelines.records.sampling_weights import SamplingWeights
from microguard.sdc.algorithms.parameters import Parameters


@dataclass(frozen=True)
class BlockConfig:
    """Settings of a clustering that a task needs to protect a block; they are pickled with the task.

    Attributes
    ----------
    secret : int
        Seed of secret draws: the shifts of means that the p % rule forbids.
    k, seed, effort, algorithm, representative, counted, min_diversity, sensitive : as in the specification
    parameters : Parameters, optional
        Parameters of the algorithm, if the specification sets any.
    plan : Plan
        The blocks and the scales of the numeric variables; moments have the order of the scales.
    nominal : tuple of str
        Nominal variables of the clustering, ordinal and hierarchical ones among them.
    dominance : tuple of (int, float)
        The (n, k) rule with which clusters are counted.
    resume : (StagingArea, str), optional
        Storage of finished blocks, and the prefix of their names.
    jointly : bool
        Whether nominal representatives are chosen later for the whole file; if so, clusters and original
        values are stored with the records.
    close : mapping of sensitive variable to float
        Largest difference of two numbers that count as one value.
    withholds : bool
        Whether the values of whole blocks may be withheld, which then need not be diverse.
    sampling_weights : SamplingWeights or None
        Weights and units of the records; None if all records count equally.
    """

    secret: int
    k: int
    seed: int
    effort: str
    algorithm: str
    parameters: Parameters | None
    representative: str
    counted: str | None
    min_diversity: int
    sensitive: tuple[str, ...]
    plan: Plan
    nominal: tuple[str, ...]
    dominance: tuple[int, float]
    resume: tuple[StagingArea, str] | None
    jointly: bool = False
    close: Mapping[str, float] = field(default_factory=dict)
    withholds: bool = False
    sampling_weights: SamplingWeights | None = None

    @property
    def coordinates(self) -> Coordinates:
        """Return the mapping from variables to coordinates."""
        return self.plan.coordinates

    def share(self, records: int) -> float:
        """Return this block's share of the run's records, which is also its share of the search work."""
        return min(1.0, records / self.plan.records)

    @property
    def numeric(self) -> tuple[str, ...]:
        """Return the numeric variables of the clustering."""
        return tuple(self.coordinates.scales)
