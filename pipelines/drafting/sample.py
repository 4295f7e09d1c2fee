"""Clustering of a sample with the drafted roles in this process, to measure its information loss and risk.

The clusters are computed with the fastest method within each region. In the whole file records have nearer
neighbours, so that the loss of the file is smaller than that of the sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from microguard.pipelines.drafting.column import Column
from microguard.pipelines.drafting.comparison_row import ComparisonRow
from microguard.pipelines.drafting.counting import counted_unit
from microguard.pipelines.drafting.guess import Guess
from microguard.pipelines.drafting.profile import Profile
from microguard.schemas.specification.sections import Quality
from microguard.sdc.clusters.diversity import Diversity, diversify
from microguard.sdc.errors import ImpossibleProtection, NoVariation
from microguard.sdc.microaggregation import microaggregate

MOST, SMALLEST = 2_000, 200
"""Maximum and minimum number of records of a sample, from which shares of one percent are measured within a
second."""
WORK = 1e9
"""Maximum work of one clustering: squared number of records times coordinates (one per number, one per
category)."""
LEAST_LEFT = 0.5
"""Minimum share of the sample in regions with at least k sampled units, so that the trial covers most
regions."""


def columns_of(guesses: Sequence[Guess], role: str, *kinds: str) -> list[Column]:
    """Return the columns with a given guessed role and, if kinds are given, one of these kinds."""
    return [
        each.column
        for each in guesses
        if each.role == role and each.column is not None and (not kinds or each.kind in kinds)
    ]


@dataclass(frozen=True)
class Sample:
    """Sampled records, and the labels of their columns by role.

    Attributes
    ----------
    frame : DataFrame
        One row per record, with labels of `Profile` as columns. Numbers are standardised, other variables are
        codes, and -1 is a missing value.
    names : mapping of label to name
    numeric, nominal : tuple of str
        Labels of the quasi-identifiers by kind.
    sensitive : tuple of str
    others : tuple of str
        Labels of the other columns that are published without modification.
    region : tuple of str
        Label of the region, or nothing.
    """

    frame: pd.DataFrame
    names: Mapping[str, str]
    numeric: tuple[str, ...]
    nominal: tuple[str, ...]
    sensitive: tuple[str, ...]
    others: tuple[str, ...]
    region: tuple[str, ...]

    @classmethod
    def from_profile(cls, profile: Profile, guesses: Sequence[Guess], k: int) -> Sample | None:
        """Draw one record of each unit, and drop regions with fewer than k sampled units.

        Returns
        -------
        Sample or None
            None if less than `LEAST_LEFT` of the sample is left.
        """
        numeric = columns_of(guesses, "quasi_identifier", "numeric")
        nominal = columns_of(guesses, "quasi_identifier", "nominal")
        sensitive, region = columns_of(guesses, "sensitive"), columns_of(guesses, "region")
        others = [*columns_of(guesses, "weight"), *columns_of(guesses, "other")]
        unit = counted_unit(guesses, profile)
        units = [] if unit is None else [unit]
        coordinates = len(numeric) + sum(column.distinct + 1 for column in nominal)
        most = int(min(max((WORK / max(coordinates, 1)) ** 0.5, SMALLEST), MOST))
        codes = [*nominal, *sensitive, *others, *region, *units]
        frame = profile.draw(numeric, codes, profile.condition_all_finite(numeric), most)
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
        """Microaggregate the records on these variables within regions; return the cluster of each record,
        (n,).
        """
        labels = np.empty(len(self.frame), np.int64)
        first = 0
        nominal = np.isin(variables, self.nominal)
        for members in self._regions():
            records = self.frame.loc[:, list(variables)].to_numpy(np.float64)[members]
            try:
                cluster_of = microaggregate(
                    records, k, effort="fast", standardise=False, nominal=nominal
                ).labels
            except NoVariation:
                cluster_of = np.zeros(len(records), np.int64)
            labels[members] = cluster_of + first
            first += int(cluster_of.max()) + 1
        return labels

    def _regions(self) -> list[np.ndarray]:
        """Return the positions of the records of each region."""
        if not self.region:
            return [np.arange(len(self.frame))]
        return [np.asarray(each) for each in self.frame.groupby(self.region[0]).indices.values()]

    def merge_for_diversity(
        self, variables: Sequence[str], labels: np.ndarray, least: int
    ) -> np.ndarray | None:
        """Merge clusters within regions until each has `least` distinct values of every sensitive variable.

        Returns
        -------
        (n,) int array or None
            Cluster of each record; None if a region has fewer values.
        """
        indicators = [
            pd.get_dummies(self.frame[label]).to_numpy(np.float64) / 2**0.5
            for label in variables
            if label in self.nominal
        ]
        numbers = self.frame.loc[:, [label for label in variables if label in self.numeric]]
        points = np.column_stack([numbers.to_numpy(np.float64), *indicators])
        values = self.frame.loc[:, list(self.sensitive)].to_numpy(np.int64)  # -1 for a missing value
        merged, first = np.empty(len(self.frame), np.int64), 0
        for members in self._regions():
            try:
                diversity = Diversity.of(values[members], least)
                cluster_of = diversify(points[members], labels[members], diversity)
            except ImpossibleProtection:
                return None
            merged[members] = cluster_of + first
            first += int(cluster_of.max()) + 1
        return merged

    def losses(self, variables: Sequence[str], labels: np.ndarray) -> dict[str, float]:
        """Return the information loss of each variable: SSE/SST, or the share of records whose category
        changes.
        """
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
        """Return the mean loss of the variables, each divided by its largest possible loss."""
        shares = []
        for label in (*self.numeric, *self.nominal):
            most = (
                1.0 if label in self.numeric else 1 - self.frame[label].value_counts(normalize=True).iloc[0]
            )
            shares.append(losses[self.names[label]] / most if most > 0 else 0.0)
        return float(np.mean(shares))

    def comparison_row(
        self, k: int, labels: np.ndarray, choice: str, broken: tuple[str, ...]
    ) -> ComparisonRow:
        """Return the information loss and the risk of these clusters as a row of the comparison."""
        losses = self.losses(self.numeric + self.nominal, labels)
        numeric = [losses[self.names[label]] for label in self.numeric]
        nominal = [losses[self.names[label]] for label in self.nominal]
        return ComparisonRow(
            k=k,
            information_loss=float(np.mean(numeric)) if numeric else None,
            categories_changed=float(np.mean(nominal)) if nominal else None,
            chi2_per_cell=None,
            unique_jointly=self.unique(labels, self.others) if self.others else None,
            homogeneous=max(self.homogeneous(labels).values(), default=None),
            choice=choice,
            broken=broken,
        )

    def broken_limits(self, labels: np.ndarray) -> tuple[str, ...]:
        """Return the names of the default disclosure limits that the clusters exceed."""
        limits = Quality()
        jointly = self.unique(labels, self.others) if self.others else 0.0
        shares = [("unique jointly", jointly, limits.max_unique_jointly)]
        shares += [
            (f"homogeneous of {name}", share, limits.max_homogeneous)
            for name, share in self.homogeneous(labels).items()
        ]
        shares += [
            (f"unique published of {name}", share, limits.max_unique_published)
            for name, share in self.unique_with(labels).items()
        ]
        return tuple(name for name, share, most in shares if share > most)

    def unique_with(self, labels: np.ndarray) -> dict[str, float]:
        """Return the share of records that are unique by cluster and each single unmodified column."""
        return {self.names[label]: self.unique(labels, [label]) for label in self.others}

    def unique(self, labels: np.ndarray, columns: Sequence[str]) -> float:
        """Return the share of records that are unique by cluster and all these columns together."""
        joined = pd.DataFrame({"cluster": labels} | {label: self.frame[label] for label in columns})
        return float(np.count_nonzero(~joined.duplicated(keep=False))) / len(joined)

    def homogeneous(self, labels: np.ndarray) -> dict[str, float]:
        """Return for each sensitive variable the share of records in clusters with at most one value
        of it.
        """
        known = self.frame[list(self.sensitive)].where(lambda codes: codes >= 0)
        clusters = known.groupby(labels)
        return {
            self.names[label]: float((clusters[label].transform("nunique") <= 1).mean())
            for label in self.sensitive
        }
