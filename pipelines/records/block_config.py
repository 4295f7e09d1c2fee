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
    """Settings of a clustering that a task needs to protect a block; pickled with the task.

    Attributes
    ----------
    secret : int
        Seed of what nobody may compute again: how means are moved that the p % rule forbids.
    k, seed, effort, algorithm, representative, counted, min_diversity, sensitive : as in the specification
    parameters : Parameters, optional
        Of the algorithm, if the specification gives any.
    plan : Plan
        The blocks, and the scales of the numeric variables, whose order is that of the moments.
    nominal : tuple of str
        Nominal variables of the clustering, ordinal and hierarchical ones among them.
    dominance : tuple of (int, float)
        The (n, k) rule that clusters are counted by.
    resume : (StagingArea, str), optional
        Where finished blocks are kept, and below which name.
    jointly : bool
        Whether nominal representatives are chosen for the whole file later: clusters and values before are
        kept next to the records then.
    close : mapping of sensitive variable to float
        Of numbers, how far apart they may be to count as one value.
    withholds : bool
        Whether the values of whole blocks may be withheld, which then need not be diverse.
    sampling_weights : SamplingWeights or None
        How the records weigh, and whose they are; None where all count alike.
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
        """The mapping from variables to coordinates."""
        return self.plan.coordinates

    def share(self, records: int) -> float:
        """Return the share of the run's records that this block has; a search gets this share of the work."""
        return min(1.0, records / self.plan.records)

    @property
    def numeric(self) -> tuple[str, ...]:
        """The numeric variables of the clustering."""
        return tuple(self.coordinates.scales)
