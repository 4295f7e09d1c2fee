"""Further cuts of a block in its task, if it exceeds the maximum number of records.

The cut trees are grown on samples and cut by the content of records. A leaf may be too large if the sample
underestimates its number of records, or if too many records are equal in all published columns. A task has
all records of its block in a total order, so that its cut depends neither on partitions nor on the order of
rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from microguard.pipelines.records.block import clusterable
from microguard.pipelines.records.block_config import BlockConfig
from microguard.pipelines.records.blocks import BLOCK
from microguard.pipelines.records.coordinates import TREE_GRID
from microguard.sdc.microaggregation.principal_cuts import CutTree


@dataclass(frozen=True)
class BlockPart:
    """Part of a block, which is solved like a block.

    Attributes
    ----------
    records : pyarrow.Table
        Records of the part, with their own block number.
    margins : (n,) float array
        Distance within which the block has no record of another part.
    """

    records: pa.Table
    margins: np.ndarray


def cut_to_limit(block: pa.Table, clustering: BlockConfig) -> Iterator[BlockPart]:
    """Split a block in halves until no part has more than `Plan.most` records.

    A part is not split if one of its halves would have fewer units or sensitive values than a cluster needs.
    The first part keeps the number of the block; the others have numbers that no block of the plan has.

    Parameters
    ----------
    block : pyarrow.Table
        All records of a block, sorted by content.
    """
    plan = clustering.plan
    if len(block) <= plan.most:
        yield BlockPart(block, np.full(len(block), np.inf))
        return
    points = clustering.coordinates.points(block)
    # subtracted, because the coordinates of each of the two records may be rounded by half a step
    rounding = TREE_GRID * math.sqrt(points.shape[1])
    number, place = block[BLOCK][0].as_py(), block.column_names.index(BLOCK)
    for position, (rows, margins) in enumerate(_parts(block, points, clustering)):
        own = pa.array(np.full(len(rows), number + position * plan.blocks, np.int64))
        records = block.take(pa.array(rows)).set_column(place, BLOCK, own)
        yield BlockPart(records, np.maximum(margins - rounding, 0.0))


def _parts(
    block: pa.Table, points: np.ndarray, clustering: BlockConfig
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Return the rows of each part, and the distance of each record to the nearest cut."""
    open_parts = [(np.arange(len(block)), np.full(len(block), np.inf))]
    while open_parts:
        rows, margins = open_parts.pop()
        if len(rows) > clustering.plan.most:
            # records with equal projections are divided by position
            tree = CutTree.grow(points[rows], rows, 2)
            sides = tree.assign(points[rows], rows)
            halves = [
                (rows[of], np.minimum(margins[of], tree.margins(points[rows[of]], side)))
                for side, of in enumerate((sides == 0, sides == 1))
            ]
            if all(clusterable(block.take(pa.array(half)), clustering) for half, _ in halves):
                open_parts += halves[::-1]
                continue
        yield rows, margins
