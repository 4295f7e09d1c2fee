"""Distances between key combinations, by the weights, orders, trees and cost matrices of a specification.

The distances follow the same rules as in clusters of records. The following pairs are as far apart as two
different nominal values: the ends of an order, two codes of a tree without a common ancestor, the pair with
the largest entry of a cost matrix, and a missing and any other value. Distances are integers, in sixtieths of
the variable with the smallest weight, because the proofs for a partition need integers.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from microguard.pipelines.intake.cost_matrices import cost_matrices
from microguard.pipelines.intake.recode import category_orders, hierarchy_paths
from microguard.schemas.specification.model import Specification
from microguard.sdc.clusters.cost_matrix import CostMatrix
from microguard.sdc.nominal.distances import Costs, Distance, Hierarchical, Nominal, Ordinal
from microguard.sdc.nominal.frequency import FrequencyVector
from microguard.sdc.nominal.similarity import Similarity

#: Integer cost of a mismatch in the variable with the smallest weight; it is divisible by 3, 4, 5 and 6.
PARTS = 60
#: Maximum total cost of all variables, because distances are stored in 16 bits.
_MOST = 30_000


def similarity(
    frequencies: FrequencyVector, values: Sequence[Sequence[str | None]], specification: Specification
) -> Similarity | None:
    """Return the distances between the key combinations of a clustering; None if all mismatches cost the
    same.

    Parameters
    ----------
    values : for each variable of the frequencies, its values as text in the order of their codes; None is
    missing
    """
    asked = distances([str(name) for name in frequencies.names], specification)
    return None if asked is None else Similarity.of(frequencies, values, asked)


def distances(names: Sequence[str], specification: Specification) -> dict[Hashable, Distance] | None:
    """Return the distances between the values of each variable; None if every mismatch costs the same."""
    weights = {name: specification.variables[name].variable_weight for name in names}
    orders, trees, matrices = (
        category_orders(specification),
        hierarchy_paths(specification),
        cost_matrices(specification),
    )
    if len(set(weights.values())) == 1 and not {*orders, *trees, *matrices} & set(names):
        return None
    scale = min(PARTS / min(weights.values()), _MOST / sum(weights.values()))
    asked: dict[Hashable, Distance] = {}
    for name in names:
        cost = max(1, round(weights[name] * scale))
        if name in orders:
            last = len(orders[name]) - 1
            # at least 1, so that neighbours in an order of any length have a distance above 0
            cost = max(cost, last)
            positions: dict[Hashable, int] = {
                category: round(cost * rank / last) for rank, category in enumerate(orders[name])
            }
            asked[name] = Ordinal(positions=positions, missing=cost)
        elif name in trees:
            asked[name] = _tree(trees[name], cost)
        elif name in matrices:
            asked[name] = _prices(matrices[name], cost)
        else:
            asked[name] = Nominal(cost)
    return asked


def _tree(paths: dict[str, tuple[str, ...]], cost: int) -> Hierarchical:
    """Return a tree whose levels divide the cost; a missing value has a branch of its own."""
    ancestors: dict[Hashable, Sequence[Hashable]] = {code: path[1:] for code, path in paths.items()}
    levels = len(next(iter(paths.values())))
    ancestors[None] = (None,) * (levels - 1)
    return Hierarchical(ancestors, max(1, round(cost / levels)))


def _prices(matrix: CostMatrix, cost: int) -> Costs:
    """Return the cost matrix as integers with the maximum `cost`, which is also the distance of a missing
    value.
    """
    whole = np.maximum(1, np.rint(matrix.mismatches * cost)).astype(np.int64)
    np.fill_diagonal(whole, 0)
    return Costs((*matrix.categories, None), whole)
