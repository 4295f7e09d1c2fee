"""Cells that vanish, by hand."""

from types import SimpleNamespace

import pyarrow as pa

from pipelines.measures.vanished import VANISHED


def cells(**counts):
    return pa.table({"sex": list(counts), "frequency": pa.array(list(counts.values()), pa.int64())})


def test_a_category_that_is_empty_now_is_counted_by_its_size_and_named_where_it_had_k():
    table, by_region = ("sex",), ("region", "sex")
    before, after = cells(f=7, m=2, x=1), cells(f=0, m=10)
    comparison = SimpleNamespace(
        specification=SimpleNamespace(region="region"),
        tables_before={table: before, by_region: before},
        tables_after={table: after, by_region: after},
    )
    section = VANISHED.take(comparison)
    part = section["1"]
    assert dict(zip(part.sizes, part.vanished, strict=True))[5] == 1
    assert sum(part.vanished) == 2
    assert sum(part.records) == 8
    assert part.transitions[2][10] == 1
    assert list(VANISHED.glance(section, 3)) == ["1 categories that held k records or more are empty now."]
