"""Build hierarchical tables of the reference files."""

from __future__ import annotations

import numpy as np
import pandas as pd
from microguard.sdc.cta import CellTable
from microguard.sdc.cta.rules.sensitivity import Sensitivity, capacities, dominance, minimum_contributors
from microguard.sdc.cta.table.relations import TOTAL, Dimension, from_cells, tabulate
from microguard.sdc.cta.table.summation import Summation
from scipy import sparse

from tests.reference import REFERENCE_FOLDER

#: Linked tables of the business survey: dimensions of each table, by name.
SURVEY_TABLES: dict[str, tuple[tuple[str, ...], ...]] = {
    "activity x size": (("activity", "size"),),
    "activity x region": (("activity", "region"),),
    "activity x size, activity x region, size x region": (
        ("activity", "size"),
        ("activity", "region"),
        ("size", "region"),
    ),
    "activity x size x region": (("activity", "size", "region"),),
}


def survey_table(name: str = "activity x region") -> CellTable:
    """Return turnover of the business survey by activity (A10, A21, A88), size and region (NUTS 1, 2)."""
    survey = pd.read_csv(REFERENCE_FOLDER / "business_survey.csv", dtype={"a88": str})
    survey = survey[survey["turnover"].notna()]
    activity = Dimension.from_levels("activity", survey["a10"], survey["a21"], survey["a88"])
    size = Dimension.from_levels("size", survey["size"])
    region = Dimension.from_levels("region", survey["nuts1"], survey["nuts2"])
    labels = {
        "activity": (activity, activity.labels(2, survey["a88"])),
        "size": (size, size.labels(0, survey["size"])),
        "region": (region, region.labels(1, survey["nuts2"])),
    }
    tables = SURVEY_TABLES[name]
    used = [each for each in labels if any(each in table for table in tables)]
    dimensions, codes = [labels[each][0] for each in used], [labels[each][1] for each in used]
    tabulation = tabulate(dimensions, codes, tables)
    totals = tabulation.totals(codes, survey["turnover"])
    contributors = tabulation.totals(codes, np.ones(len(survey)))
    return _protected(totals, tabulation.relations, minimum_contributors(contributors, totals, 3, 10))


def turnover_table() -> CellTable:
    """Return turnover by activity (three levels) and size, with dominance (1, 85) and three businesses."""
    cells = pd.read_csv(REFERENCE_FOLDER / "turnover_activity_size.csv", dtype={"activity": str, "size": str})
    survey = pd.read_csv(REFERENCE_FOLDER / "business_survey.csv", dtype=str)
    parents = survey[["a10", "a21", "a88"]].drop_duplicates()
    children: dict[str, list[str]] = {TOTAL: sorted(parents["a10"].unique())}
    for upper, lower in (("a10", "a21"), ("a21", "a88")):
        for code, group in parents.groupby(upper):
            children.setdefault(str(code), []).extend(sorted(c for c in group[lower].unique() if c != code))
    activity = Dimension.from_tree("activity", children)
    known = cells["activity"].isin(activity.codes)
    cells = cells[known].reset_index(drop=True)
    size = Dimension.from_levels("size", [s for s in cells["size"].unique() if s != TOTAL])
    tabulation, place = from_cells([activity, size], [cells["activity"], cells["size"]])
    totals, largest, numbers = (np.zeros(tabulation.cells) for _ in range(3))
    totals[place], largest[place], numbers[place] = cells["tot"], cells["max"], cells["n_obs"]
    summation = Summation.from_relations(tabulation.relations)
    assert summation is not None
    totals = summation.recompute_margins(totals)
    rule = dominance(largest[:, None], totals, 1, 85) | minimum_contributors(numbers, totals, 3, 10)
    return _protected(totals, tabulation.relations, rule)


def _protected(totals: np.ndarray, relations: sparse.csr_matrix, rule: Sensitivity) -> CellTable:
    return CellTable(
        values=totals,
        relations=relations,
        sensitive=rule.sensitive,
        lower_protection=rule.lower,
        upper_protection=rule.upper,
        lower_capacity=capacities(totals, 30, rule.lower),
        upper_capacity=capacities(totals, 30, rule.upper),
    )
