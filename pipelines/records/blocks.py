"""Blocks of records that are solved together; a shuffle moves each block into one partition.

A stratum is a region with a pattern of missing values; no block crosses it. A stratum that is too large for
one block is cut by a tree of median cuts on local first principal components. The driver grows the tree on a
sample that is drawn by the content of the records. Means and scales are computed from sums of integers. The
result does not depend on the order of records, files or partitions. Tasks split blocks that have more records
than the maximum (`block_cuts`).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.compat import with_values
from microguard.pipelines.engine.frames import with_constants
from microguard.pipelines.engine.row_hash import HASH, content_order, with_hash
from microguard.pipelines.intake.fixed_point import Scale
from microguard.pipelines.intake.recode import category_orders, hierarchy_paths
from microguard.pipelines.intake.validate import PATTERN, REGION
from microguard.pipelines.measures.pairs import drawn_order
from microguard.pipelines.records.coordinates import TREE_GRID, Coordinates
from microguard.pipelines.records.tree_sample import frequent, sample_strata, scale_constants, without_units
from microguard.schemas.errors import InputRejected, ProtectionFailed
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.sections import Group
from microguard.sdc.microaggregation.principal_cuts import CutTree
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

BLOCK = "__block"
_PARTITION, _OF_BLOCK = "__partition", "__of_block"
#: Columns of a stratum: number of the block of its first leaf, and position of its tree.
_FIRST, _TREE, _LEAF = "__first", "__tree", "__leaf"

#: Number of records in the sample on which trees are grown: per block, and minimum and maximum over all
#: strata.
SAMPLED_PER_BLOCK, LEAST_SAMPLED, MOST_SAMPLED = 1_000, 100_000, 2_000_000
#: Excess of the largest leaf, like the largest of m normal deviations. If the mean leaf has s records of the
#: sample, the largest of m leaves has at most 1 + SPREAD * sqrt(2 ln m / s) times the records of the mean
#: leaf. Measured values of SPREAD: 0.56 to 0.92 for 64 to 16,384 leaves of log-normal records, and 1.15 for
#: 15,657 leaves of tied records.
SPREAD = 1.25
#: Target number of records of a shuffle partition, and minimum number of blocks in it, because small blocks
#: take more time per record.
PARTITION_RECORDS = 50_000
PARTITION_BLOCKS = 5
#: Maximum number of coordinates of a block (half a GiB; a method needs a few copies). Each category of a
#: nominal variable adds one coordinate to every record.
MOST_NUMBERS = 1 << 26


@dataclass(frozen=True)
class Plan:
    """Assignment of strata to blocks.

    Attributes
    ----------
    strata : pyarrow.Table
        ``region`` (if there is one), `PATTERN`, ``records``, ``__first`` (block of the first leaf) and
        ``__tree`` (position in `trees`, -1 for none), sorted by region and pattern.
    trees : tuple of CutTree
    coordinates : Coordinates
    blocks : int
    most : int
        Largest number of records of a block; a task cuts larger ones again (`block_cuts`).
    """

    strata: pa.Table
    trees: tuple[CutTree, ...]
    coordinates: Coordinates
    blocks: int
    most: int = MOST_NUMBERS

    def without_trees(self, blocks: set[int], lacking_values: Set[int] = frozenset()) -> Plan:
        """Return the plan without trees for the strata of these blocks; the block numbers remain unchanged.

        Parameters
        ----------
        blocks : set of int
            Blocks with fewer units or values than every cluster needs.
        lacking_values : set of int
            Blocks in `blocks` that only lack values of a sensitive variable.

        Raises
        ------
        InputRejected
            If a stratum without a tree has fewer values of a sensitive variable than required.
        ProtectionFailed
            If a stratum without a tree has too few units, although it had enough when they were counted.
        """
        tree = self.strata[_TREE].to_numpy().copy()
        spoilt = sorted({self._stratum_of(block) for block in blocks})
        lacking = {self._stratum_of(block) for block in lacking_values}
        uniform = [stratum for stratum in spoilt if stratum in lacking and tree[stratum] < 0]
        if uniform:
            raise InputRejected(
                "method.min_diversity: expected this number of distinct, non-missing values of each "
                "sensitive variable in every region (and missing pattern of the numbers), found fewer in "
                f"{len(uniform)} of {len(tree)}. Nothing was published. Lower it ([method] min_diversity = 1 "
                "requires no second value), merge regions, or leave out the variable with too few values."
            )
        if (tree[spoilt] < 0).any():
            raise ProtectionFailed(
                "A region has fewer than k records, although it had more when the input was validated: the "
                "input changed during the run. Nothing was published; run this again when the input no "
                "longer changes."
            )
        tree[spoilt] = -1
        place = self.strata.column_names.index(_TREE)
        return replace(self, strata=self.strata.set_column(place, _TREE, pa.array(tree)))

    def reach(self, block: int, records: pa.Table) -> np.ndarray:
        """Return for each record a distance within which its stratum contains no record of another block."""
        stratum = self._stratum_of(block)
        tree = self.strata[_TREE][stratum].as_py()
        if tree < 0:
            return np.full(len(records), np.inf)
        leaf = block - self.strata[_FIRST][stratum].as_py()
        points = self.coordinates.points(records)
        # subtracted, because the coordinates of each of the two records may be rounded by half a step
        rounding = TREE_GRID * math.sqrt(points.shape[1])
        return np.maximum(self.trees[tree].margins(points, leaf) - rounding, 0.0)

    def _stratum_of(self, block: int) -> int:
        return int(np.searchsorted(self.strata[_FIRST].to_numpy(), block, side="right")) - 1

    @property
    def records(self) -> int:
        """Return the total number of records of all blocks."""
        return int(np.sum(self.strata["records"].to_numpy()))

    def sizes(self) -> np.ndarray:
        """Return the expected number of records of each block, (blocks,); 0 for leaves of an unused tree."""
        sizes = np.zeros(self.blocks)
        for records, first, tree in zip(
            *(self.strata[name].to_pylist() for name in ("records", _FIRST, _TREE)), strict=True
        ):
            leaves = 1 if tree < 0 else self.trees[tree].leaves
            sizes[first : first + leaves] = records / leaves
        return sizes


def plan(
    frame: DataFrame,
    strata: pa.Table,
    group: Group,
    specification: Specification,
    all_scales: Mapping[str, Scale],
    domains: Mapping[str, int],
) -> Plan:
    """Divide the strata of a clustering into blocks of at most `max_block_records`, or as many as memory
    permits.

    Parameters
    ----------
    domains : mapping of nominal variable to int
        Estimated number of values of the variable.
    """
    numeric = {name: all_scales[name] for name in group.variables if name in specification.numeric}
    nominal = [name for name in group.variables if name in specification.nominal]
    keys = [name for name in (REGION, PATTERN) if name in strata.column_names]
    strata = strata.sort_by([(name, "ascending") for name in keys])
    sizes = strata["records"].to_numpy()
    weights = {name: specification.variables[name].variable_weight for name in [*numeric, *nominal]}
    orders = {name: order for name, order in category_orders(specification).items() if name in nominal}
    paths = {name: tree for name, tree in hierarchy_paths(specification).items() if name in nominal}
    costs = {}
    if nominal:
        from microguard.pipelines.intake.cost_matrices import cost_matrices

        costs = {name: matrix for name, matrix in cost_matrices(specification).items() if name in nominal}
    coordinates = Coordinates(numeric, {}, weights, orders, paths, costs)
    dense = [domains[name] for name in nominal if name not in orders for _ in range(coordinates.levels(name))]
    plain = len(numeric) + sum(len(order) for order in orders.values())
    most = min(specification.max_block_records, records_within_memory(plain, dense))
    leaves, share = leaves_of(sizes, most)
    large = np.flatnonzero(leaves > 1)
    trees: list[CutTree] = []
    position = np.full(len(strata), -1)
    if len(large):
        sample, owner = sample_strata(frame, strata, large, share, numeric, nominal, specification)
        plain_names = [name for name in nominal if name not in orders and name not in costs]
        coordinates = replace(coordinates, categories={name: frequent(sample[name]) for name in plain_names})
        points, hashes = coordinates.points(sample), sample[HASH].to_numpy()
        for place in large:
            of_stratum = owner == place
            tree = CutTree.grow(points[of_stratum], hashes[of_stratum], int(leaves[place]))
            leaves[place] = tree.leaves
            position[place] = len(trees)
            trees.append(tree)
    first = np.concatenate([[0], np.cumsum(leaves)[:-1]]).astype(np.int64)
    strata = strata.append_column(_FIRST, pa.array(first)).append_column(_TREE, pa.array(position))
    return Plan(strata, tuple(trees), coordinates, int(leaves.sum()), most)


def leaves_of(sizes: np.ndarray, most: int) -> tuple[np.ndarray, float]:
    """Return the number of blocks of each stratum, and the share of records to sample for the trees.

    A tree that is grown on all records has leaves of equal size. The leaves of a tree grown on a sample
    differ in size, so that more leaves are needed.

    Parameters
    ----------
    sizes : (strata,) int array
        Records of each stratum.
    most : int
        Largest number of records of a block.
    """
    large = sizes > most
    records = float(sizes[large].sum())
    if not records:
        return np.ones(len(sizes), np.int64), 1.0
    sampled = min(max(SAMPLED_PER_BLOCK * records / most, LEAST_SAMPLED), MOST_SAMPLED)
    share = min(1.0, sampled / records)
    deviations = math.sqrt(2.0 * math.log(records / most) / (share * most))
    smaller = 1.0 if share == 1.0 else 1.0 + SPREAD * deviations
    return np.where(large, np.ceil(smaller * sizes / most), 1).astype(np.int64), share


def records_within_memory(plain: int, domains: Sequence[int]) -> int:
    """Return the maximum number of records of a block that has at most `MOST_NUMBERS` coordinates.

    Parameters
    ----------
    plain : int
        Number of columns of points with one number for each record.
    domains : sequence of int
        Number of categories of each further variable; each category that a block can contain adds one number
        to a record.
    """

    def numbers(records: int) -> int:
        return records * (plain + sum(min(domain, records) for domain in domains))

    return bisect_right(range(MOST_NUMBERS + 1), MOST_NUMBERS, key=numbers) - 1


def blocked(
    frame: DataFrame, chosen: Plan, names: list[str], mask: int, specification: Specification
) -> DataFrame:
    """Return the records with their block number; each block is in one partition and sorted by content.

    Parameters
    ----------
    frame : DataFrame
        Accepted records with `PATTERN`.
    chosen : Plan
    names : list of str
        Columns by whose content the records are sorted (all published columns).
    mask : int
        Bits of the pattern that belong to this clustering.
    specification : Specification
    """
    spark = frame.sparkSession
    placed = _with_stratum(spark, frame, chosen, mask, specification)
    placed = with_hash(placed, names, without_units(chosen.coordinates.scales))
    partition, partitions = _packed(
        chosen.sizes(), min(PARTITION_RECORDS, PARTITION_BLOCKS * specification.max_block_records)
    )
    if chosen.trees:
        arguments = [f.col(_TREE), f.col(HASH), *[column(name) for name in _variables(chosen)]]
        placed = with_values(placed, _LEAF, _leaf(chosen), t.LongType(), arguments)
        placed = placed.withColumn(BLOCK, f.col(_FIRST) + f.col(_LEAF)).drop(_LEAF)
    else:
        placed = placed.withColumn(BLOCK, f.col(_FIRST))
    if partitions > 1:
        where = pa.table(
            {_OF_BLOCK: pa.array(np.arange(chosen.blocks)), _PARTITION: pa.array(partition, pa.int32())}
        )
        placed = placed.join(
            f.broadcast(spark.createDataFrame(where)), f.col(BLOCK) == f.col(_OF_BLOCK), how="inner"
        )
        placed = placed.repartitionById(partitions, f.col(_PARTITION))
    else:
        placed = placed.coalesce(1)
    by = [block_and_hash(chosen.blocks), *content_order(frame, names), *drawn_order(frame)]
    ordered = placed.sortWithinPartitions(*by)
    return ordered.select(*[column(name) for name in frame.columns], BLOCK)


def block_and_hash(blocks: int) -> Column:
    """Combine the block number and the first bits of the hash, so that the sort compares a single number."""
    bits = 63 - blocks.bit_length()
    hashed = f.shiftright(f.col(HASH), 64 - bits) + f.lit(1 << (bits - 1))
    return f.shiftleft(f.col(BLOCK), bits) + hashed


def _variables(chosen: Plan) -> list[str]:
    coordinates = chosen.coordinates
    return [*coordinates.scales, *coordinates.categories, *coordinates.orders, *coordinates.costs]


def _with_stratum(
    spark: SparkSession, frame: DataFrame, chosen: Plan, mask: int, specification: Specification
) -> DataFrame:
    """Add `first` and `tree` of each record's stratum, and its scales as constants."""
    lookup, constants = chosen.strata.drop_columns(["records"]), scale_constants(chosen.coordinates.scales)
    if len(lookup) == 1:
        of_stratum = {name: f.lit(lookup[name][0].as_py()).cast("bigint") for name in (_FIRST, _TREE)}
        return with_constants(frame, constants).withColumns(of_stratum)
    lookup = lookup.rename_columns(
        [f"__s_{n}" if n not in (_FIRST, _TREE) else n for n in lookup.column_names]
    )
    for name, value in constants.items():
        lookup = lookup.append_column(name, pa.array(np.full(len(lookup), value)))
    table = f.broadcast(spark.createDataFrame(lookup))
    same = f.col(f"__s_{PATTERN}") == f.col(PATTERN).bitwiseAND(f.lit(mask))
    if specification.region is not None:
        same = same & f.col("__s_region").eqNullSafe(column(specification.region))
    return frame.join(table, same, how="inner")


def _packed(sizes: np.ndarray, capacity: int) -> tuple[np.ndarray, int]:
    """Assign consecutive blocks to partitions of up to `capacity` records; return the assignment and the
    number of partitions.
    """
    partition = np.zeros(len(sizes), np.int32)
    current, filled = 0, 0.0
    for block, size in enumerate(sizes):
        if filled > 0 and filled + size > capacity:
            current, filled = current + 1, 0.0
        partition[block] = current
        filled += size
    return partition, current + 1


def _leaf(chosen: Plan) -> Callable[..., pa.Array]:
    """Return an Arrow function that computes the leaf of each record in its stratum's tree; 0 without
    a tree.
    """
    trees, coordinates, names = chosen.trees, chosen.coordinates, _variables(chosen)

    def leaf(tree: pa.Array, key: pa.Array, *values: pa.Array) -> pa.Array:
        points = coordinates.points(pa.table(list(values), names=names))
        keys, which = key.to_numpy(zero_copy_only=False), tree.to_numpy(zero_copy_only=False)
        leaves = np.zeros(len(keys), np.int64)
        for position in np.unique(which[which >= 0]):
            of_tree = which == position
            leaves[of_tree] = trees[position].assign(points[of_tree], keys[of_tree])
        return pa.array(leaves)

    return leaf
