"""A trial of the drafted roles: a sample is clustered for several k, in this process; nothing is written.

What it costs and leaves open decides k, limit and groups of a draft, and is said of each variable. Clusters
are those of the quickest method within each region; a whole file has nearer neighbours, so that it costs less
than its sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from pipelines.drafting.compared import Compared
from pipelines.drafting.profile import Column, Profile
from pipelines.drafting.roles import Guess, K, by_pattern, counts_units
from schemas.specification.sections import Quality
from sdc.errors import NoVariation
from sdc.microaggregation import microaggregate

SIZES = (K, 5, 10)
"""The k that are tried, ascending."""
SAMPLE, SMALLEST_SAMPLE = 2_000, 200
"""Records of a trial: enough for shares of a percent, few enough for a second."""
WORK = 1e9
"""Squared records times coordinates (one a number, one a category) of one clustering."""
LEAST_LEFT = 0.5
"""Share of the sample in regions that have k of it: with less a trial would speak of few regions."""
COSTLY, WORTH = 0.1, 2.0
"""Loss from which groups are looked for, and the factor by which they have to cut it."""
MOST_GROUPS = 3
MOST_VARIABLES = 40
"""Quasi-identifiers whose pairs are looked at."""
FIFTHS = 5


@dataclass(frozen=True)
class Grouping:
    """Quasi-identifiers in groups that vary together.

    Attributes
    ----------
    names : tuple of tuple of str
    cost : float
        Mean loss of the variables, each clustered with its group.
    unique : float
        Share of the sample that is unique on all groups together.
    """

    names: tuple[tuple[str, ...], ...]
    cost: float
    unique: float


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
    sample = _Sample.of(profile, guesses, sizes[-1]) if sizes else None
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
        grouping=_grouping(sample, k, cost),
    )


def _can_keep(k: int, profile: Profile, guesses: Sequence[Guess]) -> bool:
    """Whether no region, and no pattern of missing numbers, has fewer than k units."""
    numeric = _columns(guesses, "quasi_identifier", "numeric")
    region, counted = _columns(guesses, "region"), counts_units(guesses, profile)
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


def _columns(guesses: Sequence[Guess], role: str, *kinds: str) -> list[Column]:
    return [
        each.column
        for each in guesses
        if each.role == role and each.column is not None and (not kinds or each.kind in kinds)
    ]


@dataclass(frozen=True)
class _Sample:
    """Drawn records, a row each; names are labels of `Profile`.

    Attributes
    ----------
    frame : DataFrame
        Numbers in standard deviations, other variables as codes.
    names : mapping of label to name
    region : tuple of str
    """

    frame: pd.DataFrame
    names: Mapping[str, str]
    numeric: tuple[str, ...]
    nominal: tuple[str, ...]
    sensitive: tuple[str, ...]
    others: tuple[str, ...]
    region: tuple[str, ...]

    @classmethod
    def of(cls, profile: Profile, guesses: Sequence[Guess], k: int) -> _Sample | None:
        """Draw a record of each unit, and keep the regions that have k of them."""
        numeric = _columns(guesses, "quasi_identifier", "numeric")
        nominal = _columns(guesses, "quasi_identifier", "nominal")
        sensitive, region = _columns(guesses, "sensitive"), _columns(guesses, "region")
        others = [*_columns(guesses, "weight"), *_columns(guesses, "other")]
        unit = counts_units(guesses, profile)
        units = [] if unit is None else [unit]
        coordinates = len(numeric) + sum(column.distinct + 1 for column in nominal)
        most = int(min(max((WORK / max(coordinates, 1)) ** 0.5, SMALLEST_SAMPLE), SAMPLE))
        codes = [*nominal, *sensitive, *others, *region, *units]
        frame = profile.drawn(numeric, codes, profile.accepting(numeric), most)
        for column in units:
            frame = frame.drop_duplicates(column.label)
        drawn = len(frame)
        for column in region:
            frame = frame[frame.groupby(column.label)[column.label].transform("size") >= k]
        if len(frame) < max(2 * k, LEAST_LEFT * drawn):
            return None
        frame = frame.reset_index(drop=True)
        for column in numeric:
            spread = frame[column.label].std()
            frame[column.label] = (frame[column.label] - frame[column.label].mean()) / (spread or 1.0)
        labels = [[column.label for column in each] for each in (numeric, nominal, sensitive, others, region)]
        names = {column.label: column.name for column in (*numeric, *codes)}
        return cls(frame, names, *(tuple(each) for each in labels))

    def clusters(self, variables: Sequence[str], k: int) -> np.ndarray:
        """Cluster of each record, (n,), on these variables within its region."""
        labels = np.empty(len(self.frame), np.int64)
        first = 0
        regions = self.frame.groupby(self.region[0]).indices if self.region else {0: slice(None)}
        nominal = np.isin(variables, self.nominal)
        for members in regions.values():
            records = self.frame.loc[:, list(variables)].to_numpy(np.float64)[members]
            try:
                found = microaggregate(records, k, effort="fast", standardise=False, nominal=nominal).labels
            except NoVariation:
                found = np.zeros(len(records), np.int64)
            labels[members] = found + first
            first += int(found.max()) + 1
        return labels

    def losses(self, variables: Sequence[str], labels: np.ndarray) -> dict[str, float]:
        """SSE/SST of a number; share of records that lose their category to the mode of their cluster."""
        records = len(self.frame)
        lost = {}
        for label in variables:
            values = self.frame[label]
            clusters = values.groupby(labels)
            if label in self.numeric:
                total = float((values**2).sum())
                lost[label] = float(((values - clusters.transform("mean")) ** 2).sum()) / (total or 1.0)
            else:
                modes = values.groupby([labels, values]).size().groupby(level=0).max()
                lost[label] = 1 - float(modes.sum()) / records
        return {self.names[label]: share for label, share in lost.items()}

    def cost(self, losses: Mapping[str, float]) -> float:
        """Mean loss of the variables, each over what could be lost."""
        shares = []
        for label in (*self.numeric, *self.nominal):
            most = (
                1.0 if label in self.numeric else 1 - self.frame[label].value_counts(normalize=True).iloc[0]
            )
            shares.append(losses[self.names[label]] / most if most > 0 else 0.0)
        return float(np.mean(shares))

    def compared(self, k: int, labels: np.ndarray) -> Compared:
        """What the clusters cost and leave open."""
        losses = self.losses(self.numeric + self.nominal, labels)
        numeric = [losses[self.names[label]] for label in self.numeric]
        nominal = [losses[self.names[label]] for label in self.nominal]
        return Compared(
            k=k,
            information_loss=float(np.mean(numeric)) if numeric else None,
            categories_changed=float(np.mean(nominal)) if nominal else None,
            chi2_per_cell=None,
            unique_jointly=self.unique(labels, self.others) if self.others else None,
            homogeneous=max(self.homogeneous(labels).values(), default=None),
        )

    def unique_with(self, labels: np.ndarray) -> dict[str, float]:
        """Share unique by cluster and one column published as it is."""
        return {self.names[label]: self.unique(labels, [label]) for label in self.others}

    def unique(self, labels: np.ndarray, columns: Sequence[str]) -> float:
        """Share unique by cluster and columns."""
        classes = self.frame.groupby([labels, *[self.frame[label] for label in columns]])
        return float((classes.size() == 1).sum()) / len(self.frame)

    def homogeneous(self, labels: np.ndarray) -> dict[str, float]:
        """Share in clusters with one value, of each sensitive variable."""
        clusters = self.frame.groupby(labels)
        return {
            self.names[label]: float((clusters[label].transform("nunique") == 1).mean())
            for label in self.sensitive
        }


def _grouping(sample: _Sample, k: int, cost: float) -> Grouping | None:
    """The fewest groups that cut the loss by `WORTH`, of variables that vary together."""
    variables = sample.numeric + sample.nominal
    if cost < COSTLY or not 3 <= len(variables) <= MOST_VARIABLES:
        return None
    tree = linkage(squareform(1 - _association(sample, variables), checks=False), "average")
    for count in range(2, min(MOST_GROUPS, len(variables) - 1) + 1):
        place = fcluster(tree, count, "maxclust")
        groups = [
            [v for v, at in zip(variables, place, strict=True) if at == each] for each in np.unique(place)
        ]
        labels = [sample.clusters(group, k) for group in groups]
        losses: dict[str, float] = {}
        for group, found in zip(groups, labels, strict=True):
            losses |= sample.losses(group, found)
        together = sample.cost(losses)
        if len(groups) > 1 and cost >= WORTH * together:
            unique = float((sample.frame.groupby(labels).size() == 1).sum()) / len(sample.frame)
            names = tuple(tuple(sample.names[label] for label in group) for group in groups)
            return Grouping(names, together, unique)
    return None


def _association(sample: _Sample, variables: Sequence[str]) -> np.ndarray:
    """How closely variables vary together, (p, p) from 0 to 1: Cramer's V, numbers cut into fifths.

    Corrected for chance (Bergsma 2013, (9)), which makes many categories look dependent on anything.
    """
    codes = [
        sample.frame[label].rank(pct=True).mul(FIFTHS).clip(upper=FIFTHS - 1).astype(int)
        if label in sample.numeric
        else sample.frame[label]
        for label in variables
    ]
    together = np.eye(len(variables))
    for i, j in combinations(range(len(variables)), 2):
        together[i, j] = together[j, i] = _cramer(pd.crosstab(codes[i], codes[j]).to_numpy(np.float64))
    return together


def _cramer(counts: np.ndarray) -> float:
    """Bergsma's corrected V of a table of counts."""
    n = counts.sum()
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / n
    rows, columns = counts.shape
    squared = float(((counts - expected) ** 2 / expected).sum()) / n - (rows - 1) * (columns - 1) / (n - 1)
    smaller = min(rows - (rows - 1) ** 2 / (n - 1), columns - (columns - 1) ** 2 / (n - 1)) - 1
    return min(max(squared, 0.0) / smaller, 1.0) ** 0.5 if smaller > 0 else 0.0
