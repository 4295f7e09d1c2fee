"""Tests of several hierarchies over one column: their tables are linked in the program and in the files."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.guarantees.additive_table import AdditiveTable
from microguard.pipelines.tables.adjusted import adjusted
from microguard.pipelines.tables.cells.cells import Cells, tabulated
from microguard.pipelines.tables.cells.microdata import contributions_needed, grouping_sets
from microguard.pipelines.tables.files import published
from microguard.pipelines.tables.groupings import Grouping
from microguard.pipelines.tables.manifest import layout_of
from microguard.pipelines.tables.problem import table_problem
from microguard.pipelines.tables.product import original_cells
from microguard.pipelines.tables.read_back import verify_written_table
from microguard.schemas.errors import InputRejected, SpecificationError
from microguard.schemas.requirements.requirement import MetricKey
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table_input import table_of

from tests.schemas.specification.test_table import build

KEY = bytes(range(32))
VARIABLES = {
    **{name: {"role": "other"} for name in ("a10", "a21", "macro", "branch")},
    "region": {"role": "region"},
    "turnover": {"role": "other", "kind": "numeric"},
}
A10 = {"A": "AB", "B": "AB", "C": "CD", "D": "CD"}
BRANCH = {"A": "x", "B": "y", "C": "x", "D": "z"}
MACRO = {"x": "xy", "y": "xy", "z": "z"}
GROUPS = pd.DataFrame({"a21": list("ABCD"), "macro": ["xy", "xy", "xy", "z"], "branch": ["x", "y", "x", "z"]})


def specification(**changes) -> Specification:
    table = {
        "value": "turnover",
        "tables": [["a21", "region"], ["branch", "region"]],
        "hierarchies": [["a10", "a21"], ["macro", "branch", "a21"]],
        "decimals": 0,
        "capacity": 60.0,
        "effort": "fast",
    }
    return build(table | changes, variables=VARIABLES)


def cells_of(specification: Specification, seed: int = 0) -> Cells:
    """Return every activity in every region, with few firms in some cells."""
    rng, table = np.random.default_rng(seed), table_of(specification)
    records = pd.DataFrame([(a, region) for a in "ABCD" for region in "nsw"], columns=["a21", "region"])
    records["a10"], records["branch"] = records["a21"].map(A10), records["a21"].map(BRANCH)
    records["macro"] = records["branch"].map(MACRO)
    records["value"], records["firms"] = rng.integers(100, 1000, 12), rng.choice([2, 30], 12, p=[0.2, 0.8])
    frames = []
    for columns in grouping_sets(table):
        sums = records.assign(all=0).groupby(["all", *columns])[["value", "firms"]].sum().reset_index()
        frames.append(sums.reindex(columns=[*table.columns, "value", "firms"], fill_value="Total"))
    table_sums = pd.concat(frames, ignore_index=True)
    units = table_sums["firms" if table.counts else "value"].to_numpy(float)
    return tabulated(
        table_sums[list(table.columns)],
        table,
        units=units,
        contributors=table_sums["firms"].to_numpy(float),
        largest=np.zeros((len(units), contributions_needed(table))),
        groupings=tuple(Grouping(finer, coarser, GROUPS) for finer, coarser in table.groupings),
    )


def written(folder, cells, units, table, original):
    contents = published(cells.codes, units, table)
    (folder / "table").mkdir(exist_ok=True)
    for name, content in contents.items():
        pq.write_table(content, folder / "table" / name)
    groupings = {(each.finer, each.coarser): each.codes for each in cells.groupings}
    layout = layout_of(table, contents, groupings)
    return verify_written_table(folder, contents, table, layout, AdditiveTable(), original)


def test_cell_of_another_hierarchy_is_the_sum_of_its_codes_in_every_region():
    cells = cells_of(specification())
    plain = cells_of(specification(hierarchies=[["a10", "a21"], ["macro", "branch"]])).tabulation.relations
    relations = cells.tabulation.relations
    assert not np.any(relations @ cells.units)
    # three branches, each in three regions and in their total
    assert relations.shape[0] == plain.shape[0] + 3 * 4
    named = [tuple(row) for row in cells.codes[["a21", "branch", "region"]].to_numpy()]
    ties = set()
    for line in relations[plain.shape[0] :]:
        (total,), parts = line.indices[line.data < 0], line.indices[line.data > 0]
        ties.add((named[total], frozenset(named[part] for part in parts)))
    for region in ("n", "s", "w", "Total"):
        parts = frozenset({("A", "Total", region), ("C", "Total", region)})
        assert (("Total", "x", region), parts) in ties


@pytest.mark.parametrize("changes", [{}, {"kind": "frequency", "value": None}], ids=["values", "counts"])
def test_published_files_are_additive_over_both_hierarchies(tmp_path, changes):
    chosen = specification(**changes)
    table, cells = table_of(chosen), cells_of(chosen)
    problem, adjustment = adjusted(table_problem(cells, chosen, KEY), chosen, table, KEY)
    units, original = adjustment.values[problem.variables], original_cells(cells, problem, table)
    assert np.any(units != cells.units)
    files = written(tmp_path, cells, units, table, original)
    assert not any(files.count.metrics.values())
    assert files.layout["groupings"][0]["codes"]["C"] == ["xy", "x"]
    # Exchange branches x and y in a region. All margins of their table remain; the activities disagree.
    codes = cells.codes
    moved = units + ((codes["branch"] == "x") & (codes["region"] == "n")) * 1.0
    moved -= ((codes["branch"] == "y") & (codes["region"] == "n")) * 1.0
    moved += ((codes["branch"] == "y") & (codes["region"] == "s")) * 1.0
    moved -= ((codes["branch"] == "x") & (codes["region"] == "s")) * 1.0
    broken = written(tmp_path, cells, moved.to_numpy(), table, original)
    assert broken.count.metrics[MetricKey("lines_open")] == 4


def test_code_in_two_groups_is_refused():
    twice = pd.concat([GROUPS, GROUPS.assign(branch="z", macro="z")]).drop_duplicates()
    with pytest.raises(InputRejected, match="a21 is not nested in branch"):
        Grouping("a21", ("macro", "branch"), twice)


@pytest.mark.parametrize(
    "changes",
    [
        {"tables": [["a21", "region"]]},
        {"hierarchies": [["a10", "a21"], ["a10", "branch", "a21"]]},
        {"hierarchies": [["a10", "a21"], ["a21", "branch"]]},
        {"source": "cells", "contributors": "turnover"},
    ],
    ids=["hierarchy without a table", "two shared columns", "shared coarser column", "cells"],
)
def test_hierarchy_without_a_new_grouping_is_refused(changes):
    with pytest.raises(SpecificationError, match="hierarchies"):
        specification(**changes)
