"""Join the systems of measures that everybody knows to be related: turnover less costs is profit.

A relation is recognised by the true values of the cells that tables of several measures have in common.
Nothing of the specification is needed, so measures that were derived before they were read are found too.
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

#: Measures of a relation and of a population at most; more of these are compared in the order of their names.
MOST_RELATED, MOST_MEASURES = 4, 12
#: Common cells that are not sums of others by which a relation is recognised, in addition to its measures.
MORE_CELLS = 2
#: Cells by which most combinations of measures are found to be unrelated.
SAMPLE = 200
#: Relative error of a relation of sums of rounded numbers.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Relation:
    """Measures of which a linear combination is 0 in every cell."""

    measures: tuple[str, ...]
    coefficients: np.ndarray


def relations(built: Mapping[str, Built]) -> Iterator[Relation]:
    """Yield the smallest linear relations among measures of amounts."""
    names = sorted(name for name, each in built.items() if not each.system.whole and len(each.cells))
    names = names[:MOST_MEASURES]
    if len(names) < 2:
        return
    truths = pd.DataFrame({name: _truths(built[name]) for name in names})
    depth = truths.index.get_level_values("label").str.count("\x1f").to_numpy()
    values = truths.to_numpy()
    found: list[set[str]] = []
    for size in range(2, MOST_RELATED + 1):
        for places in map(list, combinations(range(len(names)), size)):
            some = tuple(names[place] for place in places)
            common = ~np.isnan(values[:, places]).any(axis=1)
            finest = values[common & (depth == depth[common].max(initial=0))][:, places]
            if any(each <= set(some) for each in found) or _null(finest[:SAMPLE]) is None:
                continue
            coefficients = _null(finest)
            if coefficients is not None:
                found.append(set(some))
                yield Relation(some, coefficients)


def _truths(built: Built) -> pd.Series:
    """Return the true value of each cell by period and label, of the first table that has it."""
    cells = built.cells.drop_duplicates(["period", "label"]).set_index(["period", "label"])["unknown"]
    return pd.Series(built.system.truth[cells.to_numpy(np.int64)], index=cells.index)


def _null(values: np.ndarray) -> np.ndarray | None:
    """Return the combination of the columns of a matrix that is 0, if there is one and no part of it is."""
    scale = np.abs(values).max(axis=0, initial=0.0)
    if len(values) < values.shape[1] + MORE_CELLS or not scale.all():
        return None
    _, sizes, vectors = np.linalg.svd(values / scale)
    last = vectors[-1]
    if sizes[-1] > ROUNDING * sizes[0] or sizes[-2] <= 1e3 * ROUNDING * sizes[0] or np.abs(last).min() < 1e-6:
        return None
    combination = last / scale
    return np.asarray(combination / combination[0])


def _common(built: Mapping[str, Built], names: Sequence[str]) -> pd.DataFrame:
    """Return the cells of one period and code that tables of all measures have."""
    joined = None
    for i, name in enumerate(names):
        cells = built[name].cells.rename(columns={"unknown": f"unknown{i}"})
        cells = cells.assign(**{f"truth{i}": built[name].system.truth[cells[f"unknown{i}"]]})
        joined = cells if joined is None else joined.merge(cells, on=["period", "label"])
    assert joined is not None
    return joined


def joined(relation: Relation, built: Mapping[str, Built]) -> System:
    """Return one system of several measures, with a row for each common cell."""
    systems = [_renamed(built[name].system, name) for name in relation.measures]
    starts = np.cumsum([0, *map(len, systems)])
    cells = _common(built, relation.measures)
    size = len(systems)
    truths = cells[[f"truth{i}" for i in range(size)]].to_numpy()
    terms = truths * relation.coefficients
    agree = np.abs(terms.sum(axis=1)) <= 1e3 * ROUNDING * np.abs(terms).max(axis=1, initial=0.0)
    columns = cells.loc[agree, [f"unknown{i}" for i in range(size)]].to_numpy() + starts[:size]
    entries = np.tile(relation.coefficients, len(columns))
    linking = sparse.csr_matrix(
        (entries, (np.repeat(np.arange(len(columns)), size), columns.reshape(-1))), (len(columns), starts[-1])
    )
    zeros = np.zeros(len(columns))
    together = {
        each.name: np.concatenate([getattr(system, each.name) for system in systems])
        for each in fields(System)
        if isinstance(getattr(systems[0], each.name), np.ndarray) and each.name not in ("said", "values")
    }
    together["said"] = np.concatenate(
        [system.said + start for system, start in zip(systems, starts, strict=False)]
    )
    together["low"], together["high"] = (np.append(together[name], zeros) for name in ("low", "high"))
    together["row_release"] = np.append(together["row_release"], np.full(len(columns), STRUCTURE))
    rows = sparse.vstack([sparse.block_diag([system.rows for system in systems]), linking]).tocsr()
    return replace(systems[0], **{**together, "rows": rows, "values": np.zeros(0)})


def _renamed(system: System, measure: str) -> System:
    """Return the system with keys that no other measure has."""
    return replace(system, key=mix_bits(system.key ^ text_hash([measure])[0], 19))
