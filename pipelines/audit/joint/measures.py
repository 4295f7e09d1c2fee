"""Publicly known relations between measures: profit is turnover minus costs, a year is the sum of its months.

A relation is recognised by the true values of cells that tables of several measures, or of several periods,
have in common. The specification is not used, so measures that were derived before microguard read them are
found too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import combinations

import numpy as np
import pandas as pd
from microguard.pipelines.audit.differencing.histories import mix_bits
from microguard.pipelines.audit.joint.build import Built
from microguard.pipelines.audit.joint.partitions import text_hash
from microguard.pipelines.audit.joint.system import STRUCTURE, System
from scipy import sparse

#: Maximum number of terms of a relation, except the sum of all parts of a period. Then: maximum number of
#: measures of a period, or periods of a measure, that are compared (the first ones by name).
MOST_RELATED, MOST_COMPARED = 4, 12
#: Number of common cells (without sums of other cells) that a relation needs in addition to its number of
#: terms. For the sum of the parts of a period, whose coefficients are known, this number alone suffices.
MORE_CELLS = 2
#: Number of cells in a first test, which excludes most unrelated combinations.
SAMPLE = 200
#: Relative error up to which a relation between sums of rounded numbers counts as satisfied.
ROUNDING = 1e-9

#: Type of a key: a measure in a period.
Term = tuple[str, str]


@dataclass(frozen=True)
class Relation:
    """Linear combination of measures in periods that is 0 in every cell."""

    terms: tuple[Term, ...]
    coefficients: np.ndarray

    @property
    def measures(self) -> tuple[str, ...]:
        """Return the distinct measures of a relation."""
        return tuple(dict.fromkeys(measure for measure, _ in self.terms))


def relations(built: Mapping[str, Built]) -> Iterator[Relation]:
    """Yield the minimal linear relations among measures of amounts, and among periods of one measure."""
    names = sorted(name for name, each in built.items() if not each.system.whole and len(each.cells))
    if not names:
        return
    truths = pd.concat({name: _truths(built[name]) for name in names}).unstack([0, 1])
    terms = sorted(truths.columns)
    if len(terms) < 2:
        return
    depth = truths.index.str.count("\x1f").to_numpy()
    values = truths[terms].to_numpy(float)
    place = {term: i for i, term in enumerate(terms)}
    found: list[set[Term]] = []
    for some in _candidates(terms):
        if any(each <= set(some) for each in found):
            continue
        chosen = values[:, [place[term] for term in some]]
        common = ~np.isnan(chosen).any(axis=1)
        finest = chosen[common & (depth == depth[common].max(initial=0))]
        coefficients = _coefficients(finest, is_sum=len(some) > MOST_RELATED)
        if coefficients is not None:
            found.append(set(some))
            yield Relation(some, coefficients)


def not_related(built: Mapping[str, Built]) -> int:
    """Count the pairs of measure and period that are not compared because there are too many."""
    terms = [
        (name, period)
        for name, each in sorted(built.items())
        if not each.system.whole
        for period in sorted(each.cells["period"].unique())
    ]
    beyond: set[Term] = set()
    for which in (0, 1):
        for alike in {term[which] for term in terms}:
            beyond |= set([term for term in terms if term[which] == alike][MOST_COMPARED:])
    return len(beyond)


def _truths(built: Built) -> pd.Series:
    """Return the true value of each cell by period and label, from the first table that contains the cell."""
    cells = built.cells.drop_duplicates(["period", "label"]).set_index(["period", "label"])["unknown"]
    return pd.Series(built.system.truth[cells.to_numpy(np.int64)], index=cells.index)


def _candidates(terms: Sequence[Term]) -> Iterator[tuple[Term, ...]]:
    """Yield candidates for relations: measures of one period, periods of one measure, and a period with its
    parts.
    """
    for size in range(2, MOST_RELATED + 1):
        for which in (1, 0) if size > 2 else (1,):
            for alike in sorted({term[which] for term in terms}):
                of_alike = [term for term in terms if term[which] == alike]
                yield from combinations(of_alike[:MOST_COMPARED], size)
    for measure, period in terms:
        parts = [term for term in terms if term[0] == measure and period and term[1].startswith(f"{period}-")]
        if len(parts) >= MOST_RELATED:
            yield ((measure, period), *parts)


def _coefficients(values: np.ndarray, *, is_sum: bool) -> np.ndarray | None:
    """Return coefficients (columns,) for which the columns of a matrix sum to 0; None if there are none.

    All coefficients differ from 0: no proper subset of the columns is related.
    """
    count = values.shape[1]
    if is_sum:
        error = np.abs(values[:, 0] - values[:, 1:].sum(axis=1)).max(initial=0.0)
        whole = len(values) >= MORE_CELLS and error <= ROUNDING * np.abs(values).max()
        return np.array([1.0] + [-1.0] * (count - 1)) if whole else None
    scale = np.abs(values).max(axis=0, initial=0.0)
    if len(values) < count + MORE_CELLS or not scale.all():
        return None
    for rows in (values[:SAMPLE], values):
        _, sizes, vectors = np.linalg.svd(rows / scale, full_matrices=False)
        last = vectors[-1]
        related = sizes[-1] <= ROUNDING * sizes[0] < 1e-3 * sizes[-2]
        if not related or np.abs(last).min() < 1e-6:
            return None
    combination = last / scale
    return np.asarray(combination / combination[0])


def joined(relation: Relation, built: Mapping[str, Built]) -> tuple[System, System]:
    """Merge the systems of the related measures; return the result with and without the rows of the
    relation.
    """
    systems = {name: _renamed(built[name].system, name) for name in relation.measures}
    starts = dict(zip(systems, np.cumsum([0, *map(len, systems.values())]), strict=False))
    cells = None
    for i, (name, period) in enumerate(relation.terms):
        listed = built[name].cells
        listed = listed.loc[listed["period"] == period, ["label", "unknown"]]
        listed = listed.assign(
            **{f"truth{i}": built[name].system.truth[listed["unknown"].to_numpy(np.int64)],
               f"unknown{i}": listed["unknown"] + starts[name]}
        ).drop(columns="unknown")  # fmt: skip
        cells = listed if cells is None else cells.merge(listed, on="label")
    assert cells is not None
    size = len(relation.terms)
    amounts = cells[[f"truth{i}" for i in range(size)]].to_numpy(float) * relation.coefficients
    agree = np.abs(amounts.sum(axis=1)) <= 1e3 * ROUNDING * np.abs(amounts).max(axis=1, initial=0.0)
    columns = cells.loc[agree, [f"unknown{i}" for i in range(size)]].to_numpy(np.int64)
    count, zeros = len(columns), np.zeros(len(columns))
    entries = (
        np.tile(relation.coefficients, count),
        (np.repeat(np.arange(count), size), columns.reshape(-1)),
    )
    together = {
        each.name: np.concatenate([getattr(system, each.name) for system in systems.values()])
        for each in fields(System)
        if each.name not in ("rows", "said", "values", "whole")
    }
    together |= {name: np.append(together[name], zeros) for name in ("low", "high")}
    together["row_release"] = np.append(together["row_release"], np.full(count, STRUCTURE))
    together["said"] = np.concatenate([system.said + starts[name] for name, system in systems.items()])
    rows = sparse.block_diag([system.rows for system in systems.values()], format="csr")
    linking = sparse.csr_matrix(entries, (count, rows.shape[1]))
    first = next(iter(systems.values()))
    system = replace(
        first, **{**together, "rows": sparse.vstack([rows, linking]).tocsr(), "values": np.zeros(0)}
    )
    return system, system.with_rows(np.arange(rows.shape[0]))


def _renamed(system: System, measure: str) -> System:
    """Return the system with cell keys that no other measure has."""
    return replace(system, key=mix_bits(system.key ^ text_hash([measure])[0], 19))
