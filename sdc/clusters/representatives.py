"""Representatives: the values published for all records of a cluster, in the column's own type.

- Numeric variables get the mean or the median. Integers and decimals are computed exactly and rounded half to
  even to the column's scale. With a `protection`, means are rounded to a coarser step (`published_means`).
- Nominal variables get the mode, ordinal ones the lower median. Variables with a tree or a cost matrix get
  the category with the least sum of distances. The result is always a combination that occurs in the cluster.
- With "medoid", all variables get the values of one record, the one nearest to the cluster's mean.

Ties go to the first record. Callers sort the records by content, so that the result does not depend on the
input order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
from microguard.sdc.clusters.codes import category_codes
from microguard.sdc.clusters.cost_matrix import CostMatrix, MismatchCosts
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

#: Valid values of the argument `representative` of `represent`.
REPRESENTATIVES = ("auto", "mean", "median", "mode", "medoid")
#: Values of `representative` for which numeric variables are published as means.
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
        The records. Other columns do not change.
    labels : (n,) int array
        Cluster of each record.
    numeric, nominal : sequences of str
        Columns to replace.
    representative : {"auto", "mean", "median", "mode", "medoid"}
        "auto" is the mean for numeric and the mode for nominal columns. "mean" and "median" apply to the
        numeric columns, while nominal columns get the mode. "mode" requires nominal columns; numeric columns
        get the mean. "medoid" applies to all columns.
    orders : mapping of name to categories, optional
        Ordinal columns among the nominal ones: their categories as text, lowest first. They get the category
        with the least sum of distances by rank, which is the lower median.
    trees : mapping of name to paths, optional
        Hierarchical columns among the nominal ones, with the path of each category (see `level_codes`). They
        get the category with the least sum of distances in the tree.
    costs : mapping of name to CostMatrix, optional
        Nominal columns with a cost matrix. They get the category with the least sum of costs.
    points : (n, p) array, optional
        Coordinates of the records in the units of the clustering; required for medoids.
    record_weights : (n,) array, optional
        Nonnegative weights of the records in means, medians, modes and distances. If all weights of a cluster
        are zero, its records have equal weights.
    protection : MeanProtection, optional
        Rounding and displacement of the means of numeric columns; by default means are not changed.

    Returns
    -------
    pa.Table
        The same columns and types.

    Raises
    ------
    UnsupportedCombination
        If the representative applies to none of the columns.
    NotNumeric, NotFinite, ShapeMismatch
    InvalidParameter
        If a category is not in the order, tree or cost matrix of its variable, or a weight is negative or not
        finite.
    """
    _check_choice(representative, numeric, nominal)
    if len(labels) != len(table):
        raise ShapeMismatch(f"labels: expected one per record, {len(table)}, found {len(labels)}")
    clusters = np.unique(labels, return_inverse=True)[1].astype(np.int64).ravel()
    weights = _counting(record_weights, clusters)
    if representative == "medoid":
        if points is None:
            raise ShapeMismatch(
                "points: expected coordinates of the records for medoids, found none. Pass points"
            )
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
    """Return the mean of each record's cluster (0 to m - 1) in the column's type; NULL if all are missing."""

    def mean(values: ExactValues) -> ExactValues:
        if protection is None:
            return values.means(labels, weights)
        return protection.published(values, labels, weights, name, column.type)

    return _of_numbers(column, name, mean, labels)


def medians(column: pa.ChunkedArray, labels: np.ndarray, weights: np.ndarray, name: str = "") -> pa.Array:
    """Return the weighted median of each record's cluster (0 to m - 1): the mean of the lower and the upper
    median.
    """

    def middle(values: ExactValues) -> ExactValues:
        lower, upper = _middle(values, labels, weights)
        clusters = np.arange(len(lower))
        both = values.take(np.concatenate([lower, upper]))
        return both.means(np.concatenate([clusters, clusters]), np.ones(2 * len(lower)))

    return _of_numbers(column, name, middle, labels)


def medoids(points: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the position of the medoid of each record's cluster, (n,).

    The medoid has the least weighted sum of squared distances to the records of its cluster. The medoid is
    also the record nearest to the mean.
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
    measured: Sequence[Ranks | Tree | MismatchCosts | None] | None = None,
) -> np.ndarray:
    """Return the position of a record that carries the modes of each record's cluster, (n,).

    The mode of a variable is the category with the largest weight, or with the least sum of distances if the
    variable has distances. Ties go to the lowest code. If no record has the modes of all variables, the
    record with the fewest mismatches is chosen. If a variable has distances, a mismatch counts as its
    distance. Ties go to the record whose categories have the largest weights. Thus only combinations of
    values that occur in the cluster are published.

    Parameters
    ----------
    codes : (n, q) int array
        Category codes of q variables.
    measured : sequence of Ranks, Tree, MismatchCosts or None, optional
        Distances of each variable; None for a variable without an order, tree or cost matrix.
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
    """Return the record weights; if all weights of a cluster are zero, replace them by 1."""
    if weights is None:
        return np.ones(len(clusters))
    given = np.asarray(weights, dtype=float)
    if given.shape != clusters.shape:
        raise ShapeMismatch(f"record_weights: expected one per record, {len(clusters)}, found {given.size}")
    if not np.all(np.isfinite(given)) or np.any(given < 0.0):
        raise InvalidParameter("record_weights: expected finite numbers of at least 0, found others")
    return np.where(np.bincount(clusters, given)[clusters] > 0.0, given, 1.0)


def _measured(
    column: pa.ChunkedArray,
    order: Sequence[str] | None,
    paths: Mapping[str, Sequence[str]] | None,
    costs: CostMatrix | None,
) -> Ranks | Tree | MismatchCosts | None:
    """Return the distances of a column that has an order, a tree or a cost matrix; None for other columns."""
    if order is not None:
        return Ranks(ranks_of(column, order), len(order))
    if costs is not None:
        return MismatchCosts(costs.rows(column), costs.mismatches)
    return None if paths is None else Tree(level_codes(column, paths))


def _check_choice(representative: str, numeric: Sequence[str], nominal: Sequence[str]) -> None:
    if representative not in REPRESENTATIVES:
        raise UnsupportedCombination(
            f"representative: expected one of {', '.join(REPRESENTATIVES)}, found {representative!r}"
        )
    if representative in ("mean", "median") and not numeric:
        raise UnsupportedCombination(
            f'representative {representative!r}: expected a numeric variable, found none. Choose "auto"'
        )
    if representative == "mode" and not nominal:
        raise UnsupportedCombination(
            "representative 'mode': expected a nominal variable, found none. Choose \"auto\""
        )


def _of_numbers(
    column: pa.ChunkedArray, name: str, choose: Callable[[ExactValues], ExactValues], labels: np.ndarray
) -> pa.Array:
    if column.null_count == len(column):
        return pa.nulls(len(column), column.type)
    if column.null_count:
        raise NotFinite(
            f"variable {name}: expected no missing values, found {column.null_count} among {len(column)}. "
            "Cluster the records by missing pattern first",
            variable=name,
        )
    values = ExactValues.of(column)
    if values is None:
        raise NotNumeric(
            f"variable {name}: expected a numeric type, found {column.type}. Declare it nominal",
            variable=name,
        )
    return choose(values).take(labels).arrow(column.type)


def _middle(values: ExactValues, labels: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the lower and the upper weighted median of each cluster, which may be equal."""
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
    """Return for each record the position of the first record of its cluster in `order`, an order sorted by
    cluster.
    """
    first = np.empty(int(labels.max()) + 1, dtype=np.int64)
    first[labels[order][::-1]] = order[::-1]
    return first[labels]


def _with(table: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    position = table.schema.get_field_index(name)
    return table.set_column(position, table.schema.field(position), values)
