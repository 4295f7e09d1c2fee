"""Tests of cells that become empty, counted by hand."""

from types import SimpleNamespace

import pyarrow as pa
from microguard.pipelines.measures.empty_cells import VANISHED, VANISHED_BY_REGION
from microguard.schemas.requirements.requirement import MetricKey


def cells(**counts):
    return pa.table({"sex": list(counts), "frequency": pa.array(list(counts.values()), pa.int64())})


def test_emptied_category_is_counted_by_size_and_named_if_it_had_k_records():
    table, by_region = ("sex",), ("region", "sex")
    before, after = cells(f=7, m=2, x=4), cells(f=0, m=13)
    of_region = [counts.append_column("region", pa.array(["a"] * len(counts))) for counts in (before, after)]
    comparison = SimpleNamespace(
        specification=SimpleNamespace(region="region", release=SimpleNamespace(k=5)),
        tables_before={table: before, by_region: of_region[0]},
        tables_after={table: after, by_region: of_region[1]},
    )
    section = VANISHED.compute(comparison)
    part = section["1"]
    assert dict(zip(part.sizes, part.vanished, strict=True))[5] == 1
    assert sum(part.vanished) == 2
    assert sum(part.records) == 11
    assert part.transitions[2][11] == 1
    assert VANISHED.metrics(section, comparison) == {MetricKey("vanished", dimension=1): 1}
    assert list(VANISHED.headline(section, 5)) == [
        "Categories that contained k or more records and are empty now: 1."
    ]
    of_regions = VANISHED_BY_REGION.compute(comparison)
    assert list(VANISHED_BY_REGION.headline(of_regions, 5)) == [
        "Categories of a region that contained k or more records and are empty now: 1."
    ]
