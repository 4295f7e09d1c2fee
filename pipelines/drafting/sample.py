"""A sample of the drafted roles, clustered in this process: what clusters cost, and what they leave open.

Clusters are those of the quickest method within each region; a whole file has nearer neighbours, so that it
costs less than its sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from microguard.pipelines.drafting.classify_column import Guess
from microguard.pipelines.drafting.comparison_row import ComparisonRow
from microguard.pipelines.drafting.counting import counted_unit
from microguard.pipelines.drafting.profile import Column, Profile
from microguard.schemas.specification.sections import Quality
from microguard.sdc.clusters.diversity import Diversity, diversify
from microguard.sdc.errors import ImpossibleProtection, NoVariation
from microguard.sdc.microaggregation import microaggregate

MOST, SMALLEST = 2_000, 200
"""Records of a sample: enough for shares of a percent, few enough for a second."""
WORK = 1e9
"""Squared records times coordinates (one a number, one a category) of one clustering."""
LEAST_LEFT = 0.5
"""Share of the sample in regions that have k of it: with less a trial would speak of few regions."""


def columns_of(guesses: Sequence[Guess], role: str, *kinds: str) -> list[Column]:
    return [
        each.column
        for each in guesses
        if each.role == role and each.column is not None and (not kinds or each.kind in kinds)
    ]


@dataclass(frozen=True)
class Sample:
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
    def from_profile(cls, profile: Profile, guesses: Sequence[Guess], k: int) -> Sample | None:
        """Draw a record of each unit, and keep the regions that have k of them."""
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
        """Cluster of each record, (n,), on these variables within its region."""
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
        """Places of the records of each region."""
        if not self.region:
            return [np.arange(len(self.frame))]
        return [np.asarray(each) for each in self.frame.groupby(self.region[0]).indices.values()]

    def merge_for_diversity(
        self, variables: Sequence[str], labels: np.ndarray, least: int
    ) -> np.ndarray | None:
        """The clusters merged until each has so many values of each sensitive variable, within regions.

        None where a region has fewer.
        """
        indicators = [
            pd.get_dummies(self.frame[label]).to_numpy(np.float64) / 2**0.5
            for label in variables
            if label in self.nominal
        ]
        numbers = self.frame.loc[:, [label for label in variables if label in self.numeric]]
        points = np.column_stack([numbers.to_numpy(np.float64), *indicators])
        values = self.frame.loc[:, list(self.sensitive)].to_numpy(np.int64)  # -1 where missing
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

    def comparison_row(
        self, k: int, labels: np.ndarray, choice: str, broken: tuple[str, ...]
    ) -> ComparisonRow:
        """What the clusters cost and leave open."""
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
        """Limits on disclosure, of those that hold by default, which the clusters break."""
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
        """Share unique by cluster and one column published as it is."""
        return {self.names[label]: self.unique(labels, [label]) for label in self.others}

    def unique(self, labels: np.ndarray, columns: Sequence[str]) -> float:
        """Share unique by cluster and columns."""
        classes = self.frame.groupby([labels, *[self.frame[label] for label in columns]])
        return float((classes.size() == 1).sum()) / len(self.frame)

    def homogeneous(self, labels: np.ndarray) -> dict[str, float]:
        """Share in clusters with one value at most, of each sensitive variable."""
        known = self.frame[list(self.sensitive)].where(lambda codes: codes >= 0)
        clusters = known.groupby(labels)
        return {
            self.names[label]: float((clusters[label].transform("nunique") <= 1).mean())
            for label in self.sensitive
        }
