"""Run the scenarios: pairs of CSV files with input and expected output of the method that names their folder.

`tests/README.md` describes how to add one; it needs no code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from microguard.sdc.cta import CellTable, adjust
from microguard.sdc.microaggregation import individual_ranking, microaggregate
from microguard.sdc.nominal import aggregate, anonymise, partition
from microguard.sdc.safe import safe

FOLDER = Path(__file__).parent
INPUTS = sorted(FOLDER.glob("*/*_input.csv"))
TOTAL = "Total"
#: Tolerance for figures and values that a method computes in floating point.
RELATIVE = 1e-9

Head = Mapping[str, str]
Result = tuple[pd.DataFrame, object]
"""A frame that is compared with the output, and the result with the figures."""


def _clustered(frame: pd.DataFrame, head: Head, method: str) -> Result:
    numbers = frame.map(_number).to_numpy()
    solution = microaggregate(numbers, int(head["k"]), algorithm=method, standardise=False)
    return pd.DataFrame({"cluster": solution.labels}), solution


def _ranked(frame: pd.DataFrame, head: Head, method: str) -> Result:
    numbers = frame.map(_number)
    solution = individual_ranking(numbers, int(head["k"]))
    means = {
        name: numbers[name].groupby(solution.labels[:, place]).transform("mean")
        for place, name in enumerate(numbers)
    }
    return pd.DataFrame(means), solution


def _partitioned(frame: pd.DataFrame, head: Head, method: str) -> Result:
    solution = partition(frame, int(head["k"]))
    return pd.DataFrame({"cluster": solution.labels}), solution


def _aggregated(frame: pd.DataFrame, head: Head, method: str) -> Result:
    labels = frame.pop("cluster").astype(int).to_numpy()
    solution = aggregate(frame, labels, int(head["control_tables"]), algorithm="exact")
    return solution.protected, solution


def _exact(frame: pd.DataFrame, head: Head, method: str) -> Result:
    solution = anonymise(frame, int(head["k"]), int(head["control_tables"]), algorithm="chi-exact")
    return solution.protected, solution


def _safe(frame: pd.DataFrame, head: Head, method: str) -> Result:
    solution = safe(frame, int(head["k"]), int(head["control_tables"]), algorithm=head["algorithm"])
    return solution.protected, solution


def _adjusted(frame: pd.DataFrame, head: Head, method: str) -> Result:
    lines = []
    for along, across in (("row", "column"), ("column", "row")):
        for _, cells in frame.groupby(across):
            if TOTAL in set(cells[along]):
                line = np.zeros(len(frame))
                line[cells.index] = np.where(cells[along] == TOTAL, -1, 1)
                lines.append(line)
    numbers = frame[["value", "lower", "upper", "capacity"]].map(_number).to_numpy().T
    value, lower, upper, capacity = numbers
    table = CellTable(
        values=value,
        relations=np.array(lines),
        sensitive=(lower > 0) | (upper > 0),
        lower_protection=lower,
        upper_protection=upper,
        lower_capacity=capacity,
        upper_capacity=capacity,
        costs=np.ones(len(value)),
    )
    solution = adjust(table)
    return pd.DataFrame({"value": solution.values}), solution


METHODS: dict[str, Callable[[pd.DataFrame, Head, str], Result]] = {
    **dict.fromkeys(
        ("mdav", "maximum-distance", "k-ward", "univariate-optimal", "column-generation"), _clustered
    ),
    "individual-ranking": _ranked,
    "partition": _partitioned,
    "aggregate": _aggregated,
    "chi-exact": _exact,
    "safe": _safe,
    "cta": _adjusted,
}
#: Methods of nominal records, which are compared as multisets: the assignment of values to records is
#: arbitrary.
UNORDERED = ("aggregate", "chi-exact", "safe")
FIGURES = ("sse", "weight", "chi2", "objective")


def _number(text: str) -> float:
    return float(Fraction(text))


def _read(path: Path) -> tuple[dict[str, str], pd.DataFrame]:
    lines = path.read_text(encoding="utf-8").splitlines()
    head = dict(line[1:].strip().split(": ", 1) for line in lines if line.startswith("#"))
    table = "\n".join(line for line in lines if not line.startswith("#"))
    return head, pd.read_csv(StringIO(table), dtype=str, keep_default_na=False)


def test_at_least_thirty_scenarios_exist_and_name_the_source_of_their_result() -> None:
    assert len(INPUTS) >= 30
    for path in INPUTS:
        assert _read(path)[0].get("source"), path.name
        assert path.with_name(path.name.replace("_input", "_output")).is_file()
        assert path.parent.name in METHODS


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: f"{path.parent.name}/{path.stem[:-6]}")
def test_method_returns_the_expected_output_of_the_scenario(path: Path) -> None:
    method = path.parent.name
    head, frame = _read(path)
    _, expected = _read(path.with_name(path.name.replace("_input", "_output")))
    answer, result = METHODS[method](frame, head, method)
    for figure in FIGURES:
        if figure in head:
            assert getattr(result, figure) == pytest.approx(_number(head[figure]), rel=RELATIVE, abs=RELATIVE)
    answer = answer[list(expected.columns)]
    if "cluster" in expected:
        assert _together(answer["cluster"]) == _together(expected["cluster"])
    elif method in UNORDERED:
        assert sorted(answer.itertuples(index=False)) == sorted(expected.itertuples(index=False))
    else:
        np.testing.assert_allclose(answer, expected.map(_number), rtol=RELATIVE)


def _together(labels: pd.Series) -> set[frozenset[int]]:
    """Return the clusters as sets of records, independent of their numbers."""
    return {
        frozenset(records)
        for records in labels.reset_index(drop=True).groupby(labels.to_numpy()).groups.values()
    }
