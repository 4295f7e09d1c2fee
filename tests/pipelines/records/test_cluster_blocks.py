"""Tests of the interface between Spark and the methods, without Spark: batches are regrouped into whole
blocks.
"""

import itertools

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from microguard.pipelines.records.blocks import BLOCK
from microguard.pipelines.records.cluster_blocks import blocks_of


@given(st.lists(st.integers(1, 5), max_size=8), st.lists(st.integers(1, 7), max_size=12))
def test_block_that_spans_batches_is_processed_as_a_whole(sizes, cuts):
    ids = np.repeat(np.arange(len(sizes)), sizes)
    table = pa.table({BLOCK: ids, "place": np.arange(len(ids))})
    edges = [0, *np.cumsum(cuts)[np.cumsum(cuts) < len(ids)], len(ids)]
    batches = [b for a, c in itertools.pairwise(edges) for b in table.slice(a, c - a).to_batches()]
    found = list(blocks_of(batches))
    assert [len(part) for part in found] == sizes
    assert [row for part in found for row in part["place"].to_pylist()] == list(range(len(ids)))
