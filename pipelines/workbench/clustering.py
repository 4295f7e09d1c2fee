"""Cluster the records of one group of variables in this process, and estimate what a run loses by it.

Clusters of effort fast are built in drawn blocks (`blocks`). Parts of two blocks are then clustered with the
effort of the specification. A run shares its work among all records: it reaches what a part alone reaches in
a small file, and hardly more than effort fast in a large one. The corrected loss is the middle of both, and
its error covers them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from microguard.pipelines.workbench.blocks import SEARCHED, Drawn, Estimate, most_blocks
from microguard.pipelines.workbench.data import Values
from microguard.pipelines.workbench.used_records import UsedRecords, joined
from microguard.schemas.requirements.requirement import MetricKey

JOINTLY = MetricKey("unique_jointly")
ERROR_OF_EFFORT = 0.05
"""Error of the factor by which a loss is corrected for the effort, as two blocks stand for all."""
THREADS = 2
MOST_OF_SPREAD = 2.0
"""Largest loss of a block per unit of its spread. A cluster of n records, n_c of category c, changes
n - max n_c of them: at most n - sum n_c**2 / n, twice its spread. A lost variance divides by n, the spread by
n - 1."""
_Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Counts:
    """Equivalence classes before protection, counted on all records.

    Attributes
    ----------
    classes : int
    below_k : int
        Records in classes of fewer than k.
    uniques : int
        Records that are alone.
    """

    classes: int
    below_k: int
    uniques: int


@dataclass(frozen=True)
class Clustered:
    """The records of the drawn blocks before and after protection.

    Attributes
    ----------
    rows : (n,) int64 array
        Positions in the file.
    clusters, in_block : (n,) int64 arrays
    before, after : mapping of variable to (n,) array
        Numbers, or codes of categories.
    """

    rows: np.ndarray
    clusters: np.ndarray
    in_block: np.ndarray
    before: _Arrays = field(default_factory=dict)
    after: _Arrays = field(default_factory=dict)


class Clustering:
    """The clusters of one group of variables.

    Parameters
    ----------
    used : UsedRecords
    variables : sequence of str
        Quasi-identifiers that are clustered together.
    share : float
        Share of the work of a preview that this clustering may have.

    Attributes
    ----------
    searches : bool
        Whether the specification asks for more effort than fast.
    left_out, small_strata : int
        Records in strata of fewer than k records, and number of these strata.
    """

    def __init__(self, used: UsedRecords, variables: Sequence[str], share: float = 1.0) -> None:
        self.used, self.specification = used, used.specification
        self.k = self.specification.release.k
        self.numeric = [name for name in used.numeric if name in variables]
        self.nominal = [name for name in used.nominal if name in variables]
        self.records = used.records(self.numeric, self.nominal)
        self.blocks = self.records.blocks(self.k)
        self.searches = self.specification.method.effort != "fast" and bool(self.blocks)
        self.spreads = self.records.spreads(self.blocks).reshape(len(self.blocks), -1)
        self.sizes = np.array([len(each) for each in self.blocks], float)
        most = most_blocks(self.blocks, self.records.coordinates() / share)
        self.drawn = Drawn.from_spreads(self.spreads @ self.records.variable_weights, most)
        self.left_out = len(used.rows) - int(self.sizes.sum())
        self.small_strata = int((np.bincount(self.records.strata) < self.k).sum())
        sensitive = bool(self.specification.sensitive)
        self._min_diversity = self.specification.method.min_diversity if sensitive else 1

    def counts(self) -> Counts:
        """Count equivalence classes on the variables and the region."""
        names, rows = [*self.numeric, *self.nominal], self.used.rows
        if self.specification.region is not None:
            names.append(self.specification.region)
        sizes = np.bincount(joined([self._column(name).codes[rows] for name in names], len(rows)))
        return Counts(len(sizes), int(sizes[sizes < self.k].sum()), int((sizes == 1).sum()))

    def clustered(self) -> Clustered | None:
        """Cluster the drawn blocks with effort fast; None if there is no block."""
        labels = self._labels([(self.blocks[b], "fast", 1.0) for b in self.drawn.all])
        if not labels:
            return None
        self._fast = dict(zip(self.drawn.all, labels, strict=True))
        members = [self.blocks[b] for b in self.drawn.all]
        first = np.cumsum([0, *(int(each.max()) + 1 for each in labels)])[:-1]
        clusters = np.concatenate([each + a for each, a in zip(labels, first, strict=True)])
        rows = self.used.rows[np.concatenate(members)]
        in_block = np.repeat(np.arange(len(members)), [len(each) for each in members])
        before, after = self._published(rows, clusters)
        return Clustered(rows, clusters, in_block, before, after)

    def factor_of_effort(self) -> Estimate:
        """Estimate by what a loss of effort fast is multiplied with the effort of the specification.

        Parts of the drawn blocks of middle loss are clustered with both efforts.
        """
        method, total = self.specification.method, sum(map(len, self.blocks))
        lost = {b: self._objective(self.blocks[b], labels) for b, labels in self._fast.items()}
        order = sorted(self.drawn.all, key=lost.__getitem__)
        chosen = sorted({order[int(len(order) * (i + 1) / (SEARCHED + 1))] for i in range(SEARCHED)})
        parts = [self.records.part_of(self.blocks[b], self.k) for b in chosen]
        effort = "thorough" if method.effort == "exact" else method.effort
        labels = self._labels(
            [(part, "fast", 1.0) for part in parts] + [(part, effort, len(part) / total) for part in parts]
        )
        costs = np.array([self._objective(part, each) for part, each in zip(parts * 2, labels, strict=True)])
        fast, searched = costs[: len(parts)], costs[len(parts) :]
        if fast.sum() <= 0:
            return Estimate(1.0)
        lowest = min(1.0, float((searched[fast > 0] / fast[fast > 0]).min()))
        return Estimate((1 + lowest) / 2, (1 - lowest) / 2 + ERROR_OF_EFFORT)

    def _column(self, name: str) -> Values:
        return self.used.columns[name]

    def _objective(self, members: np.ndarray, labels: np.ndarray) -> float:
        """Return what the clusters of records cost, variables with their weights."""
        return float(self.records.differences(members, labels) @ self.records.variable_weights)

    def _labels(self, calls: list[tuple[np.ndarray, str, float]]) -> list[np.ndarray]:
        """Return the clusters of records, each call with an effort and its share of the work of a run."""
        with ThreadPoolExecutor(THREADS) as threads:  # compiled methods run in parallel
            return list(
                threads.map(
                    lambda call: self.records.cluster(call[0], self.k, call[1], self._min_diversity, call[2]),
                    calls,
                )
            )

    def _published(self, rows: np.ndarray, clusters: np.ndarray) -> tuple[_Arrays, _Arrays]:
        """Return values before and after; numbers become means, categories the mode."""
        before: dict[str, Any] = {}
        after: dict[str, Any] = {}
        for name in self.numeric:
            values = pd.Series(self._column(name).amounts[rows])
            before[name] = values.to_numpy()
            after[name] = values.groupby(clusters).transform("mean").to_numpy()
        for name in self.nominal:
            codes = self._column(name).codes[rows] + 1
            size = int(codes.max(initial=0)) + 1
            cells, counts = np.unique(clusters * size + codes, return_counts=True)
            order = np.lexsort((cells % size, -counts, cells // size))
            owner = (cells // size)[order]
            modes = (cells % size)[order][np.unique(owner, return_index=True)[1]]
            before[name], after[name] = codes - 1, modes[clusters] - 1
        return before, after

    def losses(self, found: Clustered) -> dict[str, Estimate]:
        """Estimate SSE/SST of each numeric variable, and the share of changed values of the others."""
        losses = {}
        for position, name in enumerate((*self.numeric, *self.nominal)):
            before, after = found.before[name], found.after[name]
            if name in self.numeric:
                variance = float(np.nanvar(self._column(name).amounts[self.used.rows]))
                differences = np.nan_to_num((before - after) ** 2)
                lost = differences / variance if variance > 0 else np.zeros(len(differences))
            else:
                lost = (before != after).astype(float)
            counted = 0.0 if name in self.numeric else 1.0
            losses[name] = self._share(lost, found, self.spreads[:, position], counted, MOST_OF_SPREAD)
        return losses

    def _share(
        self, of_records: np.ndarray, found: Clustered, sizes: np.ndarray, least: float, most: float = 1.0
    ) -> Estimate:
        """Estimate the mean over all records of a number that the clustered ones have (see `Drawn.total`)."""
        sums = np.bincount(found.in_block, of_records, len(self.drawn.all))
        total, records = self.drawn.total(sums, sizes, least, most), float(self.sizes.sum())
        return Estimate(total.value / records, total.error / records)

    def risks(self, found: Clustered) -> dict[MetricKey, Estimate]:
        """Estimate the shares of unique and of homogeneous records, if this is the only clustering."""
        specification, rows = self.specification, found.rows
        as_they_are = [
            name
            for name in specification.published_as_it_is
            if name not in specification.sensitive and name != specification.region
        ]

        def share(alone: np.ndarray) -> Estimate:
            return self._share(alone.astype(float), found, self.sizes, least=1.0)

        def unique(names: Iterable[str]) -> Estimate:
            codes = [found.clusters, *(self._column(name).codes[rows] for name in names)]
            combined = joined(codes, len(rows))
            return share(np.bincount(combined)[combined] == 1)

        shares = {MetricKey("unique_published", name): unique([name]) for name in as_they_are}
        if as_they_are:
            shares[JOINTLY] = unique(as_they_are)
        for name in specification.sensitive:
            codes = pd.Series(self._column(name).codes[rows])
            distinct = codes.where(codes >= 0).groupby(found.clusters).transform("nunique")
            shares[MetricKey("homogeneous", name)] = share(distinct.to_numpy() <= 1)
        return shares
