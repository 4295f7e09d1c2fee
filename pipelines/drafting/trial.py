"""A trial of the drafted roles: a sample is clustered for several k, in this process; nothing is written.

What it costs and leaves open decides k, limit and groups of a draft, and is said of each variable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from microguard.pipelines.drafting.classify_column import Guess
from microguard.pipelines.drafting.comparison_row import ComparisonRow
from microguard.pipelines.drafting.counting import K, clusters_by_missing_pattern, counted_unit
from microguard.pipelines.drafting.grouping import Grouping, find_grouping
from microguard.pipelines.drafting.profile import Profile
from microguard.pipelines.drafting.sample import Sample, columns_of
from microguard.schemas.specification.sections import Quality

SIZES = (K, 5, 10)
"""The k that are tried, ascending."""
DIVERSITY = 2
"""Values of a sensitive variable in each cluster that are tried where clusters of one value are too many."""


@dataclass(frozen=True)
class Trial:
    """What a sample of the file showed.

    Attributes
    ----------
    sampled : int
    one_each : bool
        Whether these are one record of each unit, as units repeat and k counts them.
    rows : tuple of ComparisonRow
        For each k that the file can keep, and for the values of `min_diversity` that were tried of it.
    k, min_diversity : int
        Those which break fewest of the limits on disclosure that hold by default; of such, those that cost
        least.
    cost : float
        Mean loss of the variables by these.
    losses : mapping of quasi-identifier to float
        By these: of a numeric one SSE/SST, of a nominal one the share of records whose category changes.
    unique_with : mapping of column published as it is to float
        Share unique on the quasi-identifiers with it.
    homogeneous : mapping of sensitive variable to float
        Share in clusters with one value of it.
    grouping : Grouping or None
        Where groups would cost much less.
    """

    sampled: int
    one_each: bool
    rows: tuple[ComparisonRow, ...]
    k: int
    min_diversity: int
    cost: float
    losses: Mapping[str, float]
    unique_with: Mapping[str, float]
    homogeneous: Mapping[str, float]
    grouping: Grouping | None

    @property
    def chosen(self) -> ComparisonRow:
        """What the proposal costs and leaves open."""
        choice = _choice(self.min_diversity)
        return next(row for row in self.rows if (row.k, row.choice) == (self.k, choice))


def trial(profile: Profile, guesses: Sequence[Guess]) -> Trial | None:
    """Try the guessed roles on a sample; None where the file is too small or has too many regions for one."""
    sizes = [k for k in SIZES if _can_keep(k, profile, guesses)]
    sample = Sample.from_profile(profile, guesses, sizes[-1]) if sizes else None
    if sample is None:
        return None
    protected = sample.numeric + sample.nominal
    labels = {(k, 1): sample.clusters(protected, k) for k in sizes}
    alike = [share for each in labels.values() for share in sample.homogeneous(each).values()]
    if max(alike, default=0.0) > Quality().max_homogeneous and _has_diverse_regions(profile, guesses):
        for k in sizes:
            diverse = sample.merge_for_diversity(protected, labels[k, 1], DIVERSITY)
            if diverse is not None:
                labels[k, DIVERSITY] = diverse
    broken = {tried: sample.broken_limits(labels[tried]) for tried in labels}
    costs = {tried: sample.cost(sample.losses(protected, labels[tried])) for tried in labels}
    best = min(labels, key=lambda tried: (len(broken[tried]), costs[tried], tried))
    k, min_diversity = best
    return Trial(
        sampled=len(sample.frame),
        one_each=counted_unit(guesses, profile) is not None,
        rows=tuple(
            sample.comparison_row(tried[0], labels[tried], _choice(tried[1]), broken[tried])
            for tried in sorted(labels)
        ),
        k=k,
        min_diversity=min_diversity,
        cost=costs[best],
        losses=sample.losses(protected, labels[best]),
        unique_with=sample.unique_with(labels[best]),
        homogeneous=sample.homogeneous(labels[best]),
        grouping=find_grouping(sample, k, costs[best]),
    )


def _choice(min_diversity: int) -> str:
    return f"min_diversity = {min_diversity}"


def _can_keep(k: int, profile: Profile, guesses: Sequence[Guess]) -> bool:
    """Whether no region, and no pattern of missing numbers, has fewer than k units."""
    numeric = columns_of(guesses, "quasi_identifier", "numeric")
    region, counted = columns_of(guesses, "region"), counted_unit(guesses, profile)
    if clusters_by_missing_pattern(guesses, profile):
        return profile.smallest_pattern(numeric, region, counted) >= k
    return profile.classes(region, k, profile.condition_all_finite(numeric), counted)[3] >= k


def _has_diverse_regions(profile: Profile, guesses: Sequence[Guess]) -> bool:
    """Whether every region has `DIVERSITY` values of each sensitive variable."""
    if clusters_by_missing_pattern(guesses, profile):
        return False
    accepted = profile.condition_all_finite(columns_of(guesses, "quasi_identifier", "numeric"))
    region = columns_of(guesses, "region")
    return all(
        profile.classes(region, K, accepted, sensitive)[3] >= DIVERSITY
        for sensitive in columns_of(guesses, "sensitive")
    )
