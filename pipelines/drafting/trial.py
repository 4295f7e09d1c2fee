"""A trial of the drafted roles: a sample is clustered for several k, in this process; nothing is written.

What it costs and leaves open decides k, limit and groups of a draft, and is said of each variable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipelines.drafting.compared import Compared
from pipelines.drafting.counted import K, by_pattern, counts_units
from pipelines.drafting.first_guess import Guess
from pipelines.drafting.grouping import Grouping, grouping_of
from pipelines.drafting.profile import Profile
from pipelines.drafting.sample import Sample, columns_of
from schemas.specification.sections import Quality

SIZES = (K, 5, 10)
"""The k that are tried, ascending."""


@dataclass(frozen=True)
class Trial:
    """What a sample of the file showed.

    Attributes
    ----------
    sampled : int
    one_each : bool
        Whether these are one record of each unit, as units repeat and k counts them.
    rows : tuple of Compared
        For each k that the file can keep.
    k : int
        That which breaks fewest of the limits on disclosure that hold by default; the least of such.
    broken : int
        Limits that it breaks.
    cost : float
        Mean loss of the variables at this k.
    losses : mapping of quasi-identifier to float
        At this k: of a numeric one SSE/SST, of a nominal one the share of records whose category changes.
    unique_with : mapping of column published as it is to float
        Share unique on the quasi-identifiers with it, at this k.
    homogeneous : mapping of sensitive variable to float
        Share in clusters with one value of it, at this k.
    grouping : Grouping or None
        Where groups would cost much less.
    """

    sampled: int
    one_each: bool
    rows: tuple[Compared, ...]
    k: int
    broken: int
    cost: float
    losses: Mapping[str, float]
    unique_with: Mapping[str, float]
    homogeneous: Mapping[str, float]
    grouping: Grouping | None

    @property
    def chosen(self) -> Compared:
        """What the chosen k costs and leaves open."""
        return next(row for row in self.rows if row.k == self.k)


def trial(profile: Profile, guesses: Sequence[Guess]) -> Trial | None:
    """Try the guessed roles on a sample; None where the file is too small or has too many regions for one."""
    sizes = [k for k in SIZES if _can_keep(k, profile, guesses)]
    sample = Sample.of(profile, guesses, sizes[-1]) if sizes else None
    if sample is None:
        return None
    protected = sample.numeric + sample.nominal
    labels = {k: sample.clusters(protected, k) for k in sizes}
    rows = tuple(sample.compared(k, labels[k]) for k in sizes)
    broken = {row.k: _broken(row, sample.unique_with(labels[row.k])) for row in rows}
    k = min(sizes, key=lambda size: (broken[size], size))
    losses = sample.losses(protected, labels[k])
    cost = sample.cost(losses)
    return Trial(
        sampled=len(sample.frame),
        one_each=counts_units(guesses, profile) is not None,
        rows=rows,
        k=k,
        broken=broken[k],
        cost=cost,
        losses=losses,
        unique_with=sample.unique_with(labels[k]),
        homogeneous=sample.homogeneous(labels[k]),
        grouping=grouping_of(sample, k, cost),
    )


def _can_keep(k: int, profile: Profile, guesses: Sequence[Guess]) -> bool:
    """Whether no region, and no pattern of missing numbers, has fewer than k units."""
    numeric = columns_of(guesses, "quasi_identifier", "numeric")
    region, counted = columns_of(guesses, "region"), counts_units(guesses, profile)
    if by_pattern(guesses, profile):
        return profile.smallest_pattern(numeric, region, counted) >= k
    return profile.classes(region, k, profile.accepting(numeric), counted)[3] >= k


def _broken(row: Compared, unique_with: Mapping[str, float]) -> int:
    """Limits on disclosure, of those that hold by default, which this k breaks."""
    limits = Quality()
    return (
        ((row.unique_jointly or 0) > limits.max_unique_jointly)
        + ((row.homogeneous or 0) > limits.max_homogeneous)
        + (max(unique_with.values(), default=0) > limits.max_unique_published)
    )
