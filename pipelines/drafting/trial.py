"""Trial of the drafted roles on a sample for several k, in this process and without writing files.

The measured loss and risk determine k, the limit of the loss and the groups of a draft. The draft also shows
them for each variable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from microguard.pipelines.drafting.comparison_row import ComparisonRow
from microguard.pipelines.drafting.counting import K, clusters_by_missing_pattern, counted_unit
from microguard.pipelines.drafting.grouping import Grouping, find_grouping
from microguard.pipelines.drafting.guess import Guess
from microguard.pipelines.drafting.profile import Profile
from microguard.pipelines.drafting.sample import Sample, columns_of
from microguard.schemas.specification.sections import Quality

SIZES = (K, 5, 10)
"""Values of k in a trial, ascending."""
DIVERSITY = 2
"""Value of `min_diversity` for a trial if too many records are in clusters with one sensitive value."""


@dataclass(frozen=True)
class Trial:
    """Result of a trial on a sample of the file.

    Attributes
    ----------
    sampled : int
        Number of sampled records.
    one_each : bool
        Whether the sample has one record of each unit, because units repeat and k counts them.
    rows : tuple of ComparisonRow
        One row for each feasible k and each `min_diversity` that was tried with it.
    k, min_diversity : int
        Proposed values: they exceed the fewest default limits on disclosure, and among such values they have
        the least loss.
    cost : float
        Mean loss of the variables with the proposed values.
    losses : mapping of quasi-identifier to float
        Loss with the proposed values: SSE/SST of a numeric variable, the share of changed categories of a
        nominal one.
    unique_with : mapping of unmodified column to float
        Share of records that are unique on the quasi-identifiers and this column.
    homogeneous : mapping of sensitive variable to float
        Share of records in clusters with one value of the variable.
    grouping : Grouping or None
        Groups of quasi-identifiers, if they reduce the loss considerably.
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
        """Return the row with the information loss and risk of the proposed k and min_diversity."""
        choice = _choice(self.min_diversity)
        return next(row for row in self.rows if (row.k, row.choice) == (self.k, choice))


def trial(profile: Profile, guesses: Sequence[Guess]) -> Trial | None:
    """Run a trial of the guessed roles on a sample; return None if the file is too small or has too many
    regions.
    """
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
    """Return whether every region (or every missing pattern in it) has at least k units."""
    numeric = columns_of(guesses, "quasi_identifier", "numeric")
    region, counted = columns_of(guesses, "region"), counted_unit(guesses, profile)
    if clusters_by_missing_pattern(guesses, profile):
        return profile.smallest_pattern(numeric, region, counted) >= k
    return profile.classes(region, k, profile.condition_all_finite(numeric), counted)[3] >= k


def _has_diverse_regions(profile: Profile, guesses: Sequence[Guess]) -> bool:
    """Return whether every region has `DIVERSITY` distinct values of each sensitive variable."""
    if clusters_by_missing_pattern(guesses, profile):
        return False
    accepted = profile.condition_all_finite(columns_of(guesses, "quasi_identifier", "numeric"))
    region = columns_of(guesses, "region")
    return all(
        profile.classes(region, K, accepted, sensitive)[3] >= DIVERSITY
        for sensitive in columns_of(guesses, "sensitive")
    )
