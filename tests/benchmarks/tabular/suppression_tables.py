"""Cell suppression problems from the reference files and from generated units."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
import pandas as pd
from microguard.sdc.cta.rules.sensitivity import (
    Sensitivity,
    dominance,
    largest_contributions,
    minimum_contributors,
)
from microguard.sdc.cta.table.relations import TOTAL, Dimension, Tabulation, from_cells, tabulate
from microguard.sdc.cta.table.summation import Summation
from microguard.sdc.suppression import Contributions, SuppressionProblem
from scipy import sparse

from tests.benchmarks.tabular.hierarchies import tree
from tests.reference import REFERENCE_FOLDER

Costs = Literal["number", "value"]
#: Tables of the business survey, as numbers of dimensions; a tuple is a hierarchy, coarsest level first.
SURVEY: dict[str, tuple[tuple[str, ...], ...]] = {
    "a88 x size": (("a88",), ("size",)),
    "a88 x nuts2": (("a88",), ("nuts2",)),
    "a88 x nuts2 x size": (("a88",), ("nuts2",), ("size",)),
    "a88 x nuts3 x size": (("a88",), ("nuts3",), ("size",)),
    "a10 > a21 > a88 x size": (("a10", "a21", "a88"), ("size",)),
    "a10 > a21 > a88 x nuts2": (("a10", "a21", "a88"), ("nuts2",)),
    "a10 > a21 > a88 x nuts2 x size": (("a10", "a21", "a88"), ("nuts2",), ("size",)),
}


def survey_problem(name: str, costs: Costs = "value") -> SuppressionProblem:
    """Return turnover of the business survey with dominance (1, 85), 3 businesses, levels of 20 %."""
    survey, dimensions, codes = _survey(name)
    return from_units(dimensions, codes, survey["turnover"].to_numpy(), costs, percent=20)


def survey_records(name: str) -> tuple[list[Dimension], list[np.ndarray], np.ndarray]:
    """Return the dimensions of a table of the business survey, and nodes and turnover of each record."""
    survey, dimensions, codes = _survey(name)
    places = [{code: node for node, code in enumerate(dimension.codes)} for dimension in dimensions]
    nodes = [np.array([place[code] for code in of]) for place, of in zip(places, codes, strict=True)]
    return dimensions, nodes, survey["turnover"].to_numpy()


def survey_nodes(name: str) -> np.ndarray:
    """Return the (cells, dimensions) nodes of the cells of `survey_problem`."""
    _, dimensions, codes = _survey(name)
    return tabulate(dimensions, codes).nodes


def _survey(name: str) -> tuple[pd.DataFrame, list[Dimension], list[np.ndarray]]:
    survey = pd.read_csv(REFERENCE_FOLDER / "business_survey.csv", dtype={"a88": str})
    dimensions, codes = [], []
    for levels in SURVEY[name]:
        dimension = Dimension.from_levels(levels[-1], *(survey[level] for level in levels))
        dimensions.append(dimension)
        codes.append(dimension.labels(len(levels) - 1, survey[levels[-1]]))
    return survey, dimensions, codes


def turnover_problem(costs: Costs = "number") -> SuppressionProblem:
    """Return turnover by activity (three levels) and size: 414 cells, 75 primary cells, no units."""
    cells = pd.read_csv(REFERENCE_FOLDER / "turnover_activity_size.csv", dtype={"activity": str, "size": str})
    activity = _activity(cells["activity"])
    cells = cells[cells["activity"].isin(activity.codes)].reset_index(drop=True)
    size = Dimension.from_levels("size", [s for s in cells["size"].unique() if s != TOTAL])
    return _from_table([activity, size], cells[["activity", "size"]], cells, costs)


def regional_problem(costs: Costs = "number") -> SuppressionProblem:
    """Return turnover by activity, region and size: 3,168 cells, 1,220 primary cells, no units."""
    cells = pd.read_csv(
        REFERENCE_FOLDER / "tables" / "turnover_act_nuts_size.csv", dtype={"ACTIVITY": str, "SIZE": str}
    )
    activity = _activity(cells["ACTIVITY"])
    pairs = pd.read_csv(REFERENCE_FOLDER / "tables" / "nuts23_fr_corr_table.csv")
    there = set(cells["NUTS"])
    top = [code for code in there if code.startswith("Total")]
    region = {TOTAL: [code for code in pairs["NUTS2"].unique() if code in there]}
    for code in region[TOTAL]:
        region[code] = list(pairs.loc[pairs["NUTS2"] == code, "NUTS3"])
    cells = cells.replace({"NUTS": dict.fromkeys(top, TOTAL)})
    regions = Dimension.from_tree("region", region)
    size = Dimension.from_levels("size", [s for s in cells["SIZE"].unique() if s != TOTAL])
    cells.columns = cells.columns.str.lower()
    return _from_table([activity, regions, size], cells[["activity", "nuts", "size"]], cells, costs)


def generated_problem(
    branchings: Iterable[tuple[int, ...]], units: int, seed: int, costs: Costs = "value"
) -> SuppressionProblem:
    """Return a hierarchical table of lognormal units, of which some branches have many more than others.

    Parameters
    ----------
    branchings : numbers of children of the nodes, by level, for each dimension
    units : int
    """
    rng = np.random.default_rng(seed)
    trees = [tree(f"d{number}.", branching) for number, branching in enumerate(branchings)]
    codes = []
    for dimension in trees:
        weights = rng.lognormal(0.0, 1.0, len(dimension.leaves))
        leaves = rng.choice(dimension.leaves, units, p=weights / weights.sum())
        codes.append(np.array(dimension.codes, dtype=object)[leaves])
    return from_units(trees, codes, np.rint(rng.lognormal(5.0, 1.5, units)) + 1, costs, percent=20)


def from_units(
    dimensions: Sequence[Dimension],
    codes: Sequence[np.ndarray],
    amounts: np.ndarray,
    costs: Costs,
    *,
    percent: float,
) -> SuppressionProblem:
    """Return the table of some units, each a separate contributor."""
    tabulation = tabulate(dimensions, codes)
    totals = tabulation.totals(codes, amounts)
    largest, number = largest_contributions(tabulation, codes, amounts, 1)
    rule = dominance(largest, totals, 1, 85) | minimum_contributors(number, totals, 3, percent)
    cells, units = tabulation.pairs(codes)
    return _problem(tabulation, totals, rule, costs, Contributions(cells, units, amounts[units]))


def _from_table(
    dimensions: Sequence[Dimension], codes: pd.DataFrame, cells: pd.DataFrame, costs: Costs
) -> SuppressionProblem:
    tabulation, place = from_cells(dimensions, [codes[name] for name in codes])
    totals, largest, numbers = (np.zeros(tabulation.cells) for _ in range(3))
    totals[place], largest[place], numbers[place] = cells["tot"], cells["max"], cells["n_obs"]
    summation = Summation.from_relations(tabulation.relations)
    assert summation is not None
    totals = summation.recompute_margins(totals)
    rule = dominance(largest[:, None], totals, 1, 85) | minimum_contributors(numbers, totals, 3, 20)
    return _problem(tabulation, totals, rule, costs, None)


def _problem(
    tabulation: Tabulation,
    totals: np.ndarray,
    rule: Sensitivity,
    costs: Costs,
    contributions: Contributions | None,
) -> SuppressionProblem:
    return SuppressionProblem(
        totals,
        sparse.csr_matrix(tabulation.relations),
        rule.sensitive,
        rule.lower,
        rule.upper,
        costs=np.abs(totals) if costs == "value" else np.ones(len(totals)),
        contributions=contributions,
    )


def _activity(there: pd.Series) -> Dimension:
    """Return the hierarchy of activities (A10, A21, A88), without codes that the table lacks."""
    table = pd.read_csv(REFERENCE_FOLDER / "tables" / "activity_corr_table.csv", dtype=str)
    known = set(there)
    table = table[table["A88"].isin(known)]
    return Dimension.from_tree(
        "activity",
        {TOTAL: list(table["A10"].unique())}
        | {code: list(group["A21"].unique()) for code, group in table.groupby("A10")}
        | {code: [a for a in group["A88"].unique() if a != code] for code, group in table.groupby("A21")},
    )
