"""Representatives: the values published for a cluster, exact in the column's own type.

Numeric variables get the mean or the median of their cluster, rounded half to even to the column's own
scale (integers and decimals in integer arithmetic, whatever their size). Where means are protected
(`published_means`) they are rounded to a coarser step. Nominal variables get the mode (ordinal ones the lower
median, those with a tree or prices the category nearest to the others), snapped to a combination that occurs
in the cluster. Or all of them get the cluster's medoid, a record that exists. Records come in an order that
their content decides, as ties go to the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
from microguard.sdc.clusters.codes import category_codes
from microguard.sdc.clusters.cost_matrix import CostMatrix, Prices
from microguard.sdc.clusters.exact_values import ExactValues
from microguard.sdc.clusters.hierarchical import Tree, level_codes
from microguard.sdc.clusters.ordinal import Ranks, ranks_of
from microguard.sdc.clusters.published_means import MeanProtection
from microguard.sdc.errors import (
    InvalidParameter,
    NotFinite,
    NotNumeric,
    ShapeMismatch,
    UnsupportedCombination,
)

#: What `represent` can be asked for.
REPRESENTATIVES = ("auto", "mean", "median", "mode", "medoid")
#: Those by which numeric variables get means.
MEANS = ("auto", "mean", "mode")


def represent(
    table: pa.Table,
    labels: np.ndarray,
    *,
    numeric: Sequence[str] = (),
    nominal: Sequence[str] = (),
    representative: str = "auto",
    orders: Mapping[str, Sequence[str]] | None = None,
    trees: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
    costs: Mapping[str, CostMatrix] | None = None,
    points: np.ndarray | None = None,
    record_weights: np.ndarray | None = None,
    protection: MeanProtection | None = None,
) -> pa.Table:
    """Replace the named columns of each record by the representatives of its cluster.

    Parameters
    ----------
    table : pa.Table
        The records; other columns stay as they are.
    labels : (n,) int array
        Cluster of each record.
    numeric, nominal : sequences of str
        Columns to replace.
    representative : {"auto", "mean", "median", "mode", "medoid"}
        auto: mean and mode. mean and median speak of the numeric columns (nominal ones get the mode),
        mode of the nominal ones (numeric ones get the mean), medoid of all.
    orders : mapping of name to categories, optional
        The ordinal ones of the nominal columns, lowest category first, as text: where the others get the
        mode, they get the category with the least sum of distances by rank, the lower of two medians.
    trees : mapping of name to paths, optional
        The hierarchical ones, with the path of each category (see `level_codes`): they get the category with
        the least sum of distances by tree.
    costs : mapping of name to CostMatrix, optional
        Those whose mismatches have prices: they get the category with the least sum of them.
    points : (n, p) array, optional
        Coordinates of the records in the units of the clustering; needed for medoids.
    record_weights : (n,) array, optional
        Weights of the records in means, medians, votes and distances; not negative. In a cluster whose
        weights are all zero every record counts alike.
    protection : MeanProtection, optional
        How the means of numeric columns are rounded and moved; by default they have all their digits.

    Returns
    -------
    pa.Table
        The same columns and types.

    Raises
    ------
    UnsupportedCombination
        A representative that none of the columns can have.
    NotNumeric, NotFinite, ShapeMismatch
    InvalidParameter
        A category that is not in the order, the tree or the cost matrix of its variable; a weight that is
        negative or no number.
    """
    _check_choice(representative, numeric, nominal)
    if len(labels) != len(table):
        raise ShapeMismatch(f"there are {len(labels)} labels for {len(table)} records")
    clusters = np.unique(labels, return_inverse=True)[1].astype(np.int64).ravel()
    weights = _counting(record_weights, clusters)
    if representative == "medoid":
        if points is None:
            raise ShapeMismatch("medoids need the points of the records")
        carriers = pa.array(medoids(points, clusters, weights))
        for name in (*numeric, *nominal):
            table = _with(table, name, table[name].take(carriers))
        return table
    for name in numeric:
        if representative == "median":
            values = medians(table[name], clusters, weights, name)
        else:
            values = means(table[name], clusters, weights, name, protection)
        table = _with(table, name, values)
    if nominal:
        codes = np.column_stack([category_codes(table[name]) for name in nominal])
        measured = [
            _measured(table[name], (orders or {}).get(name), (trees or {}).get(name), (costs or {}).get(name))
            for name in nominal
        ]
        carriers = pa.array(modes(codes, clusters, weights, measured))
        for name in nominal:
            table = _with(table, name, table[name].take(carriers))
    return table


def means(
    column: pa.ChunkedArray,
    labels: np.ndarray,
    weights: np.ndarray,
    name: str = "",
    protection: MeanProtection | None = None,
) -> pa.Array:
    """Mean of each record's cluster (0 to m - 1), in the column's type; NULL where all are missing."""

    def mean(values: ExactValues) -> ExactValues:
        if protection is None:
            return values.means(labels, weights)
        return protection.published(values, labels, weights, name, column.type)

    return _of_numbers(column, name, mean, labels)


def medians(column: pa.ChunkedArray, labels: np.ndarray, weights: np.ndarray, name: str = "") -> pa.Array:
    """Median of each record's cluster (0 to m - 1), between two middle values their mean."""

    def middle(values: ExactValues) -> ExactValues:
        lower, upper = _middle(values, labels, weights)
        clusters = np.arange(len(lower))
        both = values.take(np.concatenate([lower, upper]))
        return both.means(np.concatenate([clusters, clusters]), np.ones(2 * len(lower)))

    return _of_numbers(column, name, middle, labels)


def medoids(points: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Position of the medoid of each record's cluster, (n,).

    The medoid has the least weighted sum of squared distances to its cluster: it is the record nearest
    to the mean.
    """
    masses = np.bincount(labels, weights=weights)
    squares = np.zeros(len(labels))
    for coordinate in np.asarray(points, dtype=float).T:
        mean = np.bincount(labels, weights=weights * coordinate) / masses
        squares += (coordinate - mean[labels]) ** 2
    return _first_of_each(labels, np.lexsort((squares, labels)))


def modes(
    codes: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    measured: Sequence[Ranks | Tree | Prices | None] | None = None,
) -> np.ndarray:
    """Position of a record that carries the mode of each record's cluster, (n,).

    The mode of each variable is the category with most votes, that of one with distances the category
    with the least sum of them (ties: the lowest code). Where no record has the modes of all variables, the
    one with fewest mismatches is taken, of a variable with distances a part of one, among those the one whose
    categories have most votes: nothing is published together that does not occur together.

    Parameters
    ----------
    codes : (n, q) int array
        Categories of q variables.
    measured : sequence of Ranks, Tree, Prices or None, optional
        What each variable's distances are; None where two values are alike or not.
    """
    mismatches = np.zeros(len(labels))
    votes = np.zeros(len(labels))
    for column, distances in zip(codes.T, measured or [None] * codes.shape[1], strict=True):
        if distances is not None:
            costs = distances.costs(labels, weights)
            nearest = _first_of_each(labels, np.lexsort((distances.places, costs, labels)))
            mismatches += distances.distances(nearest)
            votes -= costs
            continue
        width = int(column.max()) + 1
        cells, cell = np.unique(labels * width + column, return_inverse=True)
        count = np.bincount(cell.ravel(), weights=weights)
        ranked = np.lexsort((cells % width, -count, cells // width))
        winner = np.empty(int(labels.max()) + 1, dtype=np.int64)
        winner[(cells // width)[ranked][::-1]] = (cells % width)[ranked][::-1]
        mismatches += column != winner[labels]
        votes += count[cell.ravel()]
    return _first_of_each(labels, np.lexsort((-votes, mismatches, labels)))


def _counting(weights: np.ndarray | None, clusters: np.ndarray) -> np.ndarray:
    """Weights that every cluster has some of."""
    if weights is None:
        return np.ones(len(clusters))
    given = np.asarray(weights, dtype=float)
    if given.shape != clusters.shape:
        raise ShapeMismatch(f"there are {given.size} weights for {len(clusters)} records")
    if not np.all(np.isfinite(given)) or np.any(given < 0.0):
        raise InvalidParameter("record_weights must be finite and not negative")
    return np.where(np.bincount(clusters, given)[clusters] > 0.0, given, 1.0)


def _measured(
    column: pa.ChunkedArray,
    order: Sequence[str] | None,
    paths: Mapping[str, Sequence[str]] | None,
    costs: CostMatrix | None,
) -> Ranks | Tree | Prices | None:
    """Distances of a column that has an order, a tree or a cost matrix."""
    if order is not None:
        return Ranks(ranks_of(column, order), len(order))
    if costs is not None:
        return Prices(costs.rows(column), costs.mismatches)
    return None if paths is None else Tree(level_codes(column, paths))


def _check_choice(representative: str, numeric: Sequence[str], nominal: Sequence[str]) -> None:
    if representative not in REPRESENTATIVES:
        raise UnsupportedCombination(
            f"representative {representative!r} cannot be chosen per cluster; "
            f"it can be {', '.join(REPRESENTATIVES)}"
        )
    if representative in ("mean", "median") and not numeric:
        raise UnsupportedCombination(f"there is no numeric variable whose {representative} could be taken")
    if representative == "mode" and not nominal:
        raise UnsupportedCombination("there is no nominal variable whose mode could be taken")


def _of_numbers(
    column: pa.ChunkedArray, name: str, choose: Callable[[ExactValues], ExactValues], labels: np.ndarray
) -> pa.Array:
    if column.null_count == len(column):
        return pa.nulls(len(column), column.type)
    if column.null_count:
        raise NotFinite(
            f"variable {name} has {column.null_count} missing values among {len(column)}; "
            "cluster records by missing pattern first",
            variable=name,
        )
    values = ExactValues.of(column)
    if values is None:
        raise NotNumeric(f"variable {name} has type {column.type}; a number was expected", variable=name)
    return choose(values).take(labels).arrow(column.type)


def _middle(values: ExactValues, labels: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the lower and upper weighted median of each cluster (the same where there is one)."""
    order = values.order_within(labels)
    sorted_labels = labels[order]
    total = np.cumsum(weights[order])
    starts = np.flatnonzero(np.r_[True, sorted_labels[1:] != sorted_labels[:-1]])
    stops = np.r_[starts[1:], len(order)]
    before = np.r_[0.0, total][starts]
    half = before + (total[stops - 1] - before) / 2
    lower = np.minimum(np.searchsorted(total, half, side="left"), stops - 1)
    upper = np.minimum(np.searchsorted(total, half, side="right"), stops - 1)
    return order[lower], order[upper]


def _first_of_each(labels: np.ndarray, order: np.ndarray) -> np.ndarray:
    """For each record, the first record of its cluster in `order`, which is sorted by cluster."""
    first = np.empty(int(labels.max()) + 1, dtype=np.int64)
    first[labels[order][::-1]] = order[::-1]
    return first[labels]


def _with(table: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    position = table.schema.get_field_index(name)
    return table.set_column(position, table.schema.field(position), values)
