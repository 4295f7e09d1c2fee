"""Preview risk and loss of a specification in this process, without Spark, within two seconds.

What is counted on all records is exact. What depends on clusters is estimated from blocks (`blocks`), with
its error. Clusters are first those of effort fast; two blocks are then clustered with the effort of the
specification. A run shares its work among all records: it reaches what two blocks alone reach in a small
file, and hardly more than effort fast in a large one. The corrected loss is the middle of both, and its error
covers them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from microguard.pipelines.measures.registry import record_measures
from microguard.pipelines.workbench.blocks import SEARCHED, Drawn, Estimate, Records, most_blocks
from microguard.pipelines.workbench.data import Data, Values
from microguard.pipelines.workbench.figures import CHANGED, JOINTLY, LOSS, Limit, Preview
from microguard.schemas.errors import SpecificationError
from microguard.schemas.method_registry import method_row
from microguard.schemas.requirements.requirement import MetricKey
from microguard.schemas.specification.model import Specification

ERROR_OF_EFFORT = 0.05
"""Error of the factor by which a loss is corrected for the effort, as two blocks stand for all."""
THREADS = 2
METHOD = "microaggregation"
"""The method that risk and loss are computed with, whatever the specification chooses."""
MOST_OF_SPREAD = 2.0
"""Largest loss of a block per unit of its spread. A cluster of n records, n_c of category c, changes
n - max n_c of them: at most n - sum n_c**2 / n, twice its spread. A lost variance divides by n, the spread by
n - 1."""
_ByName = dict[str, Any]


def preview(
    data: Data, specification: Specification, show: Callable[[Preview], None] = lambda _: None
) -> Preview:
    """Measure a specification on the records in memory.

    Parameters
    ----------
    show : callable
        Is called with the figures at effort fast, before those of the effort of the specification.

    Raises
    ------
    SpecificationError
        If a variable cannot be measured.
    """
    work = _Work(data, specification)
    first = work.measured()
    if not work.searches:
        return first
    show(first)
    return work.corrected(first)


class _Work:
    """The arrays of one preview."""

    def __init__(self, data: Data, specification: Specification) -> None:
        self.data, self.specification, self.k = data, specification, specification.release.k
        self.notes: list[str] = []
        published = [*specification.quasi_identifiers, *specification.published_as_it_is]
        self.columns = {name: self._values(name) for name in dict.fromkeys(published)}
        self.numeric = [name for name in specification.numeric if self.columns[name].numbers is not None]
        wrong = [name for name in specification.numeric if name not in self.numeric]
        if wrong:
            raise SpecificationError(
                f"variables.{wrong[0]}: expected a column of numbers, as its kind is numeric, found text. "
                "Change its kind to nominal."
            )
        self.nominal = [name for name in specification.quasi_identifiers if name not in self.numeric]
        self.used = self._used()
        self.records = self._records()
        self.blocks = self.records.blocks(self.k)
        self.searches = specification.method.effort != "fast" and bool(self.blocks)
        self.spreads = self.records.spreads(self.blocks).reshape(len(self.blocks), -1)
        self.sizes = np.array([len(each) for each in self.blocks], float)
        most = most_blocks(self.blocks, self.records.coordinates())
        self.drawn = Drawn.from_spreads(self.spreads @ self.records.variable_weights, most)
        sensitive = bool(specification.sensitive)
        self.min_diversity = specification.method.min_diversity if sensitive else 1
        self._note_differences()

    def _note_differences(self) -> None:
        specification = self.specification
        if specification.groups:
            self.notes.append("Groups are protected as one here: their loss is smaller in a run.")
        if not self.numeric:
            self.notes.append(
                "Variables without numbers are protected by counts of combinations in a run; here records "
                "are clustered. Check foretells the limits with the method itself."
            )
        left_out = len(self.used) - int(self.sizes.sum())
        if left_out:
            strata = int((np.bincount(self.records.strata) < self.k).sum())
            self.notes.append(
                f"{left_out:,} records are in {strata:,} strata (regions and missing patterns) of fewer than "
                f"k = {self.k} records. Risk and loss leave them out. A run merges, suppresses or refuses "
                "them."
            )
        if specification.ordinal or specification.hierarchical:
            self.notes.append(
                "Ordinal and hierarchical variables are clustered as nominal ones here: a run knows which of "
                "their categories are close, and loses less."
            )
        if specification.method.name != METHOD:
            self.notes.append("The figures are those of microaggregation, not of the method that is chosen.")
        if specification.weight is not None and specification.method.weighted:
            self.notes.append("Losses here count each record once; those of a run are weighted.")
        if self.data.profile.cut:
            self.notes.append(
                f"The file has more records: the first {self.data.profile.records:,} are measured. Of the "
                "whole file losses are smaller, and counts before protection are larger."
            )

    def _values(self, name: str) -> Values:
        return self.data.values(name, self.specification.variables[name], self.specification)

    def _used(self) -> np.ndarray:
        """Return the positions of the records that are protected: one of each unit, none that is rejected."""
        specification = self.specification
        kept = np.ones(self.data.profile.records, bool)
        if specification.missing.numeric == "reject":
            for name in self.numeric:
                kept &= np.isfinite(self.columns[name].amounts)
        if specification.missing.nominal == "reject":
            for name in self.nominal:
                kept &= self.columns[name].codes >= 0
        if specification.region is not None:
            kept &= self.columns[specification.region].codes >= 0
        used = np.flatnonzero(kept)
        if specification.counted is not None and specification.counted in self.data.columns:
            units = self._values(specification.counted).codes[used]
            first = np.sort(np.unique(units, return_index=True)[1])
            if len(first) < len(used):
                self.notes.append("k counts units: one record of each unit is measured.")
                used = used[first]
        return used

    def _records(self) -> Records:
        specification, used = self.specification, self.used
        points, strata = [], []
        if specification.region is not None:
            strata.append(self.columns[specification.region].codes[used])
        for name in self.numeric:
            values = self.columns[name].amounts[used].copy()
            missing = ~np.isfinite(values)
            strata.append(missing.astype(np.int64))
            spread = np.nanstd(values, ddof=1) if len(values) > 1 else 0.0
            values = (values - np.nanmean(values)) / (spread or 1.0) if not missing.all() else values
            values[missing] = 0.0
            points.append(values)
        points += [self.columns[name].codes[used] + 1.0 for name in self.nominal]
        sensitive = [self.columns[name].codes[used] for name in specification.sensitive]
        weight, weights = specification.weight_of_means, None
        if weight is not None and self.columns[weight].numbers is not None:
            weights = self.columns[weight].amounts[used]
        return Records(
            points=np.column_stack(points) if points else np.zeros((len(used), 0)),
            nominal=np.array([False] * len(self.numeric) + [True] * len(self.nominal)),
            strata=joined(strata, len(used)),
            sensitive=np.column_stack(sensitive) if sensitive else np.zeros((len(used), 0), np.int64),
            weights=weights if weights is not None and np.all(weights > 0) else None,
            variable_weights=np.array(
                [specification.variables[name].variable_weight for name in (*self.numeric, *self.nominal)]
            ),
        )

    def measured(self) -> Preview:
        """Cluster the drawn blocks with effort fast, and measure."""
        labels = self._clustered([(b, "fast", 1.0) for b in self.drawn.all])
        self.objectives = {
            b: self._objective(b, each) for b, each in zip(self.drawn.all, labels, strict=True)
        }
        members = [self.blocks[b] for b in self.drawn.all]
        first = np.cumsum([0, *(int(each.max()) + 1 for each in labels)])[:-1]
        clusters = (
            np.concatenate([each + a for each, a in zip(labels, first, strict=True)]) if labels else None
        )
        where = np.concatenate(members) if members else np.zeros(0, np.int64)
        in_block = np.repeat(np.arange(len(members)), [len(each) for each in members])
        metrics: dict[MetricKey, Estimate] = {}
        losses: dict[str, Estimate] = {}
        before, after, names = _ByName(), _ByName(), _ByName()
        if clusters is not None:
            before, after, names = self._published(where, clusters)
            losses = self._losses(before, after, in_block)
            metrics = self._risks(where, clusters, in_block)
        counted = self._counts()
        return self._with_means(
            Preview(
                records=self.data.profile.records,
                used=len(self.used),
                clustered=len(where),
                k=self.k,
                classes=counted[0],
                below_k=counted[1],
                uniques=counted[2],
                metrics=metrics,
                losses=losses,
                limits=(),
                effort="fast",
                before=before,
                after=after,
                names=names,
                notes=tuple(self.notes),
                promises_k="k-anonymity" in method_row("records", self.specification.method.name).guarantees,
                is_of_method=self.specification.method.name == METHOD,
            )
        )

    def corrected(self, first: Preview) -> Preview:
        """Return the figures with the losses of the effort of the specification."""
        method, total = self.specification.method, sum(map(len, self.blocks))
        order = sorted(self.drawn.all, key=self.objectives.__getitem__)
        chosen = [order[int(len(order) * (i + 1) / (SEARCHED + 1))] for i in range(SEARCHED)]
        effort = "thorough" if method.effort == "exact" else method.effort
        labels = self._clustered([(b, effort, len(self.blocks[b]) / total) for b in chosen])
        fast = np.array([self.objectives[b] for b in chosen])
        searched = np.array([self._objective(b, each) for b, each in zip(chosen, labels, strict=True)])
        if fast.sum() <= 0:
            return replace(first, effort=method.effort)
        lowest = min(1.0, float((searched[fast > 0] / fast[fast > 0]).min()))
        factor = Estimate((1 + lowest) / 2, (1 - lowest) / 2 + ERROR_OF_EFFORT)
        losses = {name: each.times(factor) for name, each in first.losses.items()}
        return self._with_means(replace(first, losses=losses, effort=method.effort))

    def _objective(self, block: int, labels: np.ndarray) -> float:
        """Return what the clusters of a block cost, variables with their weights."""
        return float(self.records.differences(self.blocks[block], labels) @ self.records.variable_weights)

    def _clustered(self, calls: list[tuple[int, str, float]]) -> list[np.ndarray]:
        """Return the clusters of blocks, each with an effort and its share of the work of a run."""
        with ThreadPoolExecutor(THREADS) as threads:  # compiled methods run in parallel
            return list(
                threads.map(
                    lambda call: self.records.cluster(
                        self.blocks[call[0]], self.k, call[1], self.min_diversity, call[2]
                    ),
                    calls,
                )
            )

    def _with_means(self, found: Preview) -> Preview:
        """Add the means of the losses, and judge the limits."""
        metrics = dict(found.metrics)
        for key, names in ((LOSS, self.numeric), (CHANGED, self.nominal)):
            each = [found.losses[name] for name in names if name in found.losses]
            if each:
                metrics[key] = Estimate(
                    float(np.mean([one.value for one in each])), float(np.mean([one.error for one in each]))
                )
        return replace(found, metrics=metrics, limits=tuple(self._limits(metrics)))

    def _limits(self, metrics: Mapping[MetricKey, Estimate]) -> Iterable[Limit]:
        for measure in record_measures(self.specification):
            for requirement in measure.limits(self.specification):
                estimate = metrics.get(requirement.key)
                if estimate is not None:
                    yield Limit.judge(requirement, estimate)

    def _counts(self) -> tuple[int, int, int]:
        """Count equivalence classes on the quasi-identifiers and the region, before protection."""
        names = [*self.numeric, *self.nominal]
        if self.specification.region is not None:
            names.append(self.specification.region)
        sizes = np.bincount(joined([self.columns[name].codes[self.used] for name in names], len(self.used)))
        return len(sizes), int(sizes[sizes < self.k].sum()), int((sizes == 1).sum())

    def _published(self, where: np.ndarray, clusters: np.ndarray) -> tuple[_ByName, _ByName, _ByName]:
        """Return values before and after, and the names of categories; numbers become means."""
        before, after, names = _ByName(), _ByName(), _ByName()
        for name in (*self.numeric, *self.nominal):
            column, rows = self.columns[name], self.used[where]
            if name in self.numeric:
                values = pd.Series(column.amounts[rows])
                before[name] = values.to_numpy()
                after[name] = values.groupby(clusters).transform("mean").to_numpy()
            else:
                codes = column.codes[rows] + 1
                size = int(codes.max(initial=0)) + 1
                cells, counts = np.unique(clusters * size + codes, return_counts=True)
                order = np.lexsort((cells % size, -counts, cells // size))
                owner = (cells // size)[order]
                modes = (cells % size)[order][np.unique(owner, return_index=True)[1]]
                before[name], after[name] = codes - 1, modes[clusters] - 1
                names[name] = column.names
        return before, after, names

    def _losses(self, before: _ByName, after: _ByName, in_block: np.ndarray) -> dict[str, Estimate]:
        losses = {}
        for position, name in enumerate((*self.numeric, *self.nominal)):
            if name in self.numeric:
                differences = np.nan_to_num((before[name] - after[name]) ** 2)
                values = self.columns[name].amounts[self.used]
                variance = float(np.nanvar(values))
                lost = differences / variance if variance > 0 else np.zeros(len(differences))
            else:
                lost = (before[name] != after[name]).astype(float)
            counted = 0.0 if name in self.numeric else 1.0
            losses[name] = self._share(lost, in_block, self.spreads[:, position], counted, MOST_OF_SPREAD)
        return losses

    def _share(
        self,
        of_records: np.ndarray,
        in_block: np.ndarray,
        sizes: np.ndarray,
        least: float = 0.0,
        most: float = 1.0,
    ) -> Estimate:
        """Estimate the mean over all records of a number that the clustered ones have (see `Drawn.total`)."""
        sums = np.bincount(in_block, of_records, len(self.drawn.all))
        total, records = self.drawn.total(sums, sizes, least, most), float(self.sizes.sum())
        return Estimate(total.value / records, total.error / records)

    def _risks(
        self, where: np.ndarray, clusters: np.ndarray, in_block: np.ndarray
    ) -> dict[MetricKey, Estimate]:
        """Estimate the shares of unique and of homogeneous records; classes are clusters."""
        specification, rows = self.specification, self.used[where]
        as_they_are = [
            name
            for name in specification.published_as_it_is
            if name not in specification.sensitive and name != specification.region
        ]

        def share(alone: np.ndarray) -> Estimate:
            return self._share(alone.astype(float), in_block, self.sizes, least=1.0)

        def unique(names: Iterable[str]) -> Estimate:
            combined = joined([clusters, *(self.columns[name].codes[rows] for name in names)], len(rows))
            return share(np.bincount(combined)[combined] == 1)

        found = {MetricKey("unique_published", name): unique([name]) for name in as_they_are}
        if as_they_are:
            found[JOINTLY] = unique(as_they_are)
        for name in specification.sensitive:
            codes = pd.Series(self.columns[name].codes[rows])
            distinct = codes.where(codes >= 0).groupby(clusters).transform("nunique")
            found[MetricKey("homogeneous", name)] = share(distinct.to_numpy() <= 1)
        return found


def joined(codes: Iterable[np.ndarray], records: int) -> np.ndarray:
    """Return the number of the combination of each record, from 0."""
    found = np.zeros(records, np.int64)
    for each in codes:
        found = found * (int(each.max(initial=0)) + 2) + each + 1
        found = np.unique(found, return_inverse=True)[1]
    return found
