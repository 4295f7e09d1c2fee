"""Clustering of the records of one group of variables in this process, to estimate the information loss of a
run.

The drawn blocks (`blocks`) are clustered with effort fast. Parts of two blocks are then clustered with the
effort of the specification. A run distributes its work over all records: in a small file it reaches the loss
of such a part, and in a large file hardly less than the loss of effort fast. The corrected loss is the middle
of these two losses, and its error covers both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from microguard.pipelines.workbench.blocks import (
    ERRORS,
    REPEATED,
    RULE_OF_THREE,
    SEARCHED,
    Drawn,
    Estimate,
    most_blocks,
)
from microguard.pipelines.workbench.data import Values
from microguard.pipelines.workbench.used_records import UsedRecords, joined
from microguard.schemas.requirements.requirement import MetricKey
from microguard.sdc.clusters.published_means import MeanProtection
from microguard.sdc.clusters.representatives import represent

JOINTLY = MetricKey("unique_jointly")
ERROR_OF_EFFORT = 0.05
"""Error of the factor by which a loss is corrected for the effort; two blocks represent all of them."""
THREADS = 2
MOST_OF_SPREAD = 2.0
"""Largest loss of a block per unit of its spread. A cluster of n records, n_c of them in category c, changes
n - max n_c values. This is at most n - sum n_c**2 / n, which is twice its spread. A lost variance divides by
n, the spread by n - 1."""
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
    """Records of the drawn blocks before and after protection.

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
    """Clusters of one group of variables.

    Parameters
    ----------
    used : UsedRecords
    variables : sequence of str
        Quasi-identifiers that are clustered together.
    share : float
        Share of the work of a preview that this clustering may use.

    Attributes
    ----------
    searches : bool
        Whether the specification asks for more effort than fast.
    left_out, small_strata : int
        Records in strata of fewer than k records, and the number of these strata.
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
        numbers = {name: used.columns[name].amounts[used.rows] for name in self.numeric}
        self._deviations = {name: float(np.nanstd(each, ddof=1)) for name, each in numbers.items()}
        self._min_diversity = self.specification.method.min_diversity if sensitive else 1

    def counts(self) -> Counts:
        """Count equivalence classes on the variables and the region."""
        names, rows = [*self.numeric, *self.nominal], self.used.rows
        if self.specification.region is not None:
            names.append(self.specification.region)
        sizes = np.bincount(joined([self._column(name).codes[rows] for name in names], len(rows)))
        return Counts(len(sizes), int(sizes[sizes < self.k].sum()), int((sizes == 1).sum()))

    def clustered(self) -> Clustered | None:
        """Cluster the drawn blocks with effort fast; return None if there is no block."""
        drawn = [self.blocks[b] for b in self.drawn.all]
        if not drawn:
            return None
        chosen = [(i * len(drawn) // REPEATED) % len(drawn) for i in range(REPEATED)]
        seeds = [1 + chosen[:i].count(each) for i, each in enumerate(chosen)]
        labels = self._labels(
            [(members, "fast", 1.0, 0) for members in drawn]
            + [(drawn[each], "fast", 1.0, seed) for each, seed in zip(chosen, seeds, strict=True)]
        )
        self._fast = dict(zip(self.drawn.all, labels, strict=False))
        blocks = [drawn[each] for each in chosen]
        self._repeated = (
            self._published(blocks, [labels[each] for each in chosen]),
            self._published(blocks, labels[len(drawn) :], seed=1),
        )
        return self._published(drawn, labels[: len(drawn)])

    def factor_of_effort(self) -> Estimate:
        """Estimate the ratio of the loss with the specified effort to that with effort fast.

        Parts of the drawn blocks with medium loss are clustered with both efforts.
        """
        method, total = self.specification.method, sum(map(len, self.blocks))
        lost = {b: self._objective(self.blocks[b], labels) for b, labels in self._fast.items()}
        order = sorted(self.drawn.all, key=lost.__getitem__)
        chosen = sorted({order[int(len(order) * (i + 1) / (SEARCHED + 1))] for i in range(SEARCHED)})
        parts = [self.records.part_of(self.blocks[b], self.k) for b in chosen]
        effort = "thorough" if method.effort == "exact" else method.effort
        labels = self._labels(
            [(part, "fast", 1.0, 0) for part in parts]
            + [(part, effort, len(part) / total, 0) for part in parts]
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
        """Return the cost of the clusters of records, with weighted variables."""
        return float(self.records.differences(members, labels) @ self.records.variable_weights)

    def _labels(self, calls: list[tuple[np.ndarray, str, float, int]]) -> list[np.ndarray]:
        """Cluster the records of each call (positions, effort, share of the work of a run, seed)."""
        with ThreadPoolExecutor(THREADS) as threads:  # in threads, because compiled methods run in parallel
            return list(
                threads.map(
                    lambda call: self.records.cluster(
                        call[0], self.k, call[1], self._min_diversity, call[2], call[3]
                    ),
                    calls,
                )
            )

    def _published(
        self, blocks: Sequence[np.ndarray], labels: Sequence[np.ndarray], seed: int = 0
    ) -> Clustered:
        """Return values before and after protection; numbers become means or medians, categories become the
        mode.
        """
        first = np.cumsum([0, *(int(each.max()) + 1 for each in labels)])[:-1]
        clusters = np.concatenate([each + a for each, a in zip(labels, first, strict=True)])
        rows = self.used.rows[np.concatenate(blocks)]
        in_block = np.repeat(np.arange(len(blocks)), [len(each) for each in blocks])
        before: dict[str, Any] = {}
        after: dict[str, Any] = {}
        if self.numeric:
            before = {name: self._column(name).amounts[rows] for name in self.numeric}
            after = self._means(before, clusters, seed)
        for name in self.nominal:
            codes = self._column(name).codes[rows] + 1
            size = int(codes.max(initial=0)) + 1
            cells, counts = np.unique(clusters * size + codes, return_counts=True)
            order = np.lexsort((cells % size, -counts, cells // size))
            owner = (cells // size)[order]
            modes = (cells % size)[order][np.unique(owner, return_index=True)[1]]
            before[name], after[name] = codes - 1, modes[clusters] - 1
        return Clustered(rows, clusters, in_block, before, after)

    def _means(self, before: _Arrays, clusters: np.ndarray, seed: int) -> dict[str, np.ndarray]:
        """Return means in the form in which a run publishes them: rounded, and displaced if the variable is
        an amount.
        """
        median = self.specification.method.representative == "median"
        protection = None if median else MeanProtection(self._deviations, seed)
        after = {}
        for name, values in before.items():
            known = np.isfinite(values)  # in each cluster, a variable has either all its values or none
            column = pa.array(values[known]).cast(self.used.kind(name), safe=False)
            published = represent(
                pa.table({name: column}),
                clusters[known],
                numeric=[name],
                representative="median" if median else "auto",
                protection=protection,
            )
            after[name] = np.full(len(values), np.nan)
            after[name][known] = published[name].cast(pa.float64()).to_numpy()
        return after

    def losses(self, found: Clustered) -> dict[str, Estimate]:
        """Estimate SSE/SST of each numeric variable, and the share of changed values of each categorical
        variable.

        The effect of another seed on the losses is measured on a few blocks. All variables share one relative
        effect, so that none has a small error by chance. If no record of these blocks changes, the rule of
        three bounds the share of records that change.
        """
        lost, *again = map(self._lost, (found, *self._repeated))
        changes = {name: self._change(again[0][name], again[1][name]) for name in lost}
        losses = {}
        for position, name in enumerate(lost):
            least = 0.0 if name in self.numeric else 1.0
            losses[name] = self._share(lost[name], found, self.spreads[:, position], least, MOST_OF_SPREAD)
        relative = [changes[name] / each.value for name, each in losses.items() if each.value > 0]
        common = float(np.mean(np.square(relative))) ** 0.5 if relative else 0.0
        for name, each in losses.items():
            varies = name in self.nominal or self._deviations[name] > 0
            least = RULE_OF_THREE / float(self.sizes.sum()) * varies
            if name in self.numeric:
                least *= each.value or 1.0
            error = max(ERRORS * changes[name], ERRORS * common * each.value, least)
            losses[name] = Estimate(each.value, each.error + error)
        return losses

    def _lost(self, found: Clustered) -> dict[str, np.ndarray]:
        """Return the loss of each record in each variable."""
        lost = {}
        for name in (*self.numeric, *self.nominal):
            before, after = found.before[name], found.after[name]
            if name in self.numeric:
                variance = float(np.nanvar(self._column(name).amounts[self.used.rows]))
                differences = np.nan_to_num((before - after) ** 2)
                lost[name] = differences / variance if variance > 0 else np.zeros(len(differences))
            else:
                lost[name] = (before != after).astype(float)
        return lost

    def _share(
        self, of_records: np.ndarray, found: Clustered, sizes: np.ndarray, least: float, most: float = 1.0
    ) -> Estimate:
        """Estimate the mean over all records of a number that the clustered records have (see
        `Drawn.total`).
        """
        sums = np.bincount(found.in_block, of_records, len(self.drawn.all))
        total, records = self.drawn.total(sums, sizes, least, most), float(self.sizes.sum())
        return Estimate(total.value / records, total.error / records)

    def _change(self, one: np.ndarray, other: np.ndarray) -> float:
        """Return the standard error of the mean over all records that is due to the choice of the seed.

        `one` and `other` have a value for each record of `_repeated`. Blocks change independently of each
        other. A few blocks may differ little by chance, so the variance is at least that of records that
        change independently, as in the test of McNemar (1947).
        """
        blocks, records = self._repeated[0].in_block, float(self.sizes.sum())
        change = max(float((np.bincount(blocks, other - one) ** 2).sum()), float(((other - one) ** 2).sum()))
        return (change * records / len(blocks)) ** 0.5 / records

    def risks(self, found: Clustered) -> dict[MetricKey, Estimate]:
        """Estimate the shares of unique and of homogeneous records, if the release has no other
        clustering.
        """
        flags, *again = map(self._flags, (found, *self._repeated))
        shares = {}
        for key, each in flags.items():
            share = self._share(each, found, self.sizes, least=1.0)
            change = ERRORS * self._change(again[0][key], again[1][key])
            error = max(change, RULE_OF_THREE / float(self.sizes.sum()))
            shares[key] = Estimate(share.value, share.error + error)
        return shares

    def _flags(self, found: Clustered) -> dict[MetricKey, np.ndarray]:
        """Return 1 for each record that is unique or homogeneous, otherwise 0; the clusters are the
        classes.
        """
        specification, rows = self.specification, found.rows
        as_they_are = [
            name
            for name in specification.published_as_it_is
            if name not in specification.sensitive and name != specification.region
        ]

        def unique(names: Iterable[str]) -> np.ndarray:
            codes = [found.clusters, *(self._column(name).codes[rows] for name in names)]
            combined = joined(codes, len(rows))
            return (np.bincount(combined)[combined] == 1).astype(float)

        flags = {MetricKey("unique_published", name): unique([name]) for name in as_they_are}
        if as_they_are:
            flags[JOINTLY] = unique(as_they_are)
        for name in specification.sensitive:
            codes = pd.Series(self._column(name).codes[rows])
            distinct = codes.where(codes >= 0).groupby(found.clusters).transform("nunique")
            flags[MetricKey("homogeneous", name)] = (distinct.to_numpy() <= 1).astype(float)
        return flags
