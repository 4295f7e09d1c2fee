"""Tests of published digits: with default decimals, last digits do not reveal which cells were adjusted."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from microguard.pipelines import admission
from microguard.pipelines.audit.release import audit
from microguard.pipelines.publication.identity import SOFTWARE, identity
from microguard.pipelines.tables.adjusted import whole_adjustment
from microguard.pipelines.tables.cells.cells import Cells, tabulated
from microguard.pipelines.tables.precision import with_digits_of_data
from microguard.pipelines.tables.problem import table_problem
from microguard.schemas.specification.model import Specification

from tests.pipelines.turnover import specification
from tests.schemas.specification.test_table import build

KEY = bytes(range(32))
SEEDS = range(8)
OPEN = {
    "max_direction_odds": 1.0, "max_determined": 20, "min_direction_error": 0.0,
    "max_grand_total_change": 0.05,
}  # fmt: skip


def unversioned(made_from: dict) -> dict:
    return {key: value for key, value in made_from.items() if key != SOFTWARE}


def whole_cells(chosen: Specification, seed: int) -> Cells:
    """Return a two-way table with margins of whole-number contributions, some of them dominant."""
    assert chosen.table is not None
    rng = np.random.default_rng(seed)
    records = pd.DataFrame(
        {
            "a21": rng.choice(list("ABCDE"), 90),
            "region": rng.choice(list("nsw"), 90),
            "v": np.rint(rng.lognormal(5, 1.3, 90)) + 1,
        }
    )
    rows = []
    for labels in (["a21", "region"], ["a21"], ["region"], []):
        summed = {name: "Total" for name in ("a21", "region") if name not in labels}
        for codes, values in records.assign(**summed).groupby(["a21", "region"])["v"]:
            top = values.nlargest(2).tolist()
            rows.append((*codes, values.sum(), len(values), *top, *[0.0] * (2 - len(top))))
    frame = pd.DataFrame(rows, columns=["a21", "region", "v", "n", "x1", "x2"])
    scale = 10.0**chosen.table.digits
    return tabulated(
        frame[["a21", "region"]],
        chosen.table,
        units=frame["v"].to_numpy() * scale,
        contributors=frame["n"].to_numpy(float),
        largest=frame[["x1", "x2"]].to_numpy() * scale,
    )


def last_digits_and_moves(decimals: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the last digits of every published value, and whether the value was adjusted."""
    chosen = build(
        {"value": "turnover", "tables": [["a21", "region"]], "decimals": decimals, "effort": "fast"}
    )
    assert chosen.table is not None
    digits, moved = [], []
    for seed in SEEDS:
        cells = whole_cells(chosen, seed)
        problem = table_problem(cells, chosen, KEY)
        shown = whole_adjustment(problem.secret, chosen, chosen.table).values[problem.variables]
        digits.append(np.rint(shown) % 10 ** (decimals + 1))
        moved.append(shown != cells.units)
    return np.concatenate(digits), np.concatenate(moved)


@pytest.mark.parametrize(
    ("decimals", "tells"), [(2, True), (0, False)], ids=["earlier default", "digits of the data"]
)
def test_last_digits_reveal_adjusted_cells_of_whole_numbers_only_with_more_digits_than_the_data(
    decimals, tells
) -> None:
    """The attacker learns from half of the cells which last digits adjusted cells have."""
    digits, moved = last_digits_and_moves(decimals)
    assert 0.15 < moved.mean() < 0.9
    half = np.random.default_rng(0).random(len(moved)) < 0.5
    whole = digits % 10**decimals == 0
    assert np.all(whole) == (not tells)
    if tells:
        assert moved[~whole].all()
        assert moved[whole].mean() < 0.1
        return
    overall = moved[half].mean()
    rate = {each: moved[half & (digits == each)].mean() for each in np.unique(digits[half])}
    guess = np.array([rate.get(each, overall) > 0.5 for each in digits[~half]])
    blind = max(moved[~half].mean(), 1 - moved[~half].mean())
    assert (guess == moved[~half]).mean() <= blind + 0.05


@pytest.mark.parametrize(
    ("columns", "table", "digits"),
    [
        ({"turnover": [5, 7]}, {}, 0),
        ({"turnover": [5.0, 70.0]}, {}, 0),
        ({"turnover": [5.0, 0.1 + 0.2]}, {}, 1),
        ({"turnover": [5.25, 1.0]}, {}, None),
        ({"turnover": [5.0, 0.12345]}, {}, None),
        ({"turnover": [0.5, 1.0], "weight": [2.0, 1.0]}, {"weighted": True}, 1),
        ({"turnover": [3.0, 1.0], "weight": [1.1, 2.0]}, {"weighted": True}, 1),
        ({"weight": [3.0, 2.0]}, {"kind": "frequency", "value": None, "weighted": True}, 0),
        ({"weight": [3.25, 2.0]}, {"kind": "frequency", "value": None, "weighted": True}, None),
        ({"turnover": [5.25, 1.0]}, {"decimals": 0}, 0),
        ({"turnover": [5.0, 1.0]}, {"decimals": 3}, 3),
        ({"turnover": [2.0], "home": [0.5], "firms": [1.5]}, {"parts": {"market": ["home", "firms"]},
          "tables": [["a21", "market"]]}, 1),
    ],
    ids=["integers", "whole floats", "one digit", "two digits", "more than two digits",
         "a value with weights", "a weight with digits", "whole weights", "weights with digits",
         "fewer digits specified", "more digits specified", "parts"],
)  # fmt: skip
def test_table_has_the_digits_of_its_data_by_default(spark, columns, table, digits) -> None:
    chosen = build({"value": "turnover", "tables": [["a21", "region"]], **table})
    found = with_digits_of_data(spark.createDataFrame(pd.DataFrame(columns)), chosen)
    assert found.table is not None
    assert found.table.decimals == digits
    assert found.table.digits == (2 if digits is None else digits)


def test_release_identity_contains_the_digits_unless_they_equal_the_earlier_default() -> None:
    screened = SimpleNamespace(fingerprint="of the input")
    table = {"value": "turnover", "tables": [["a21", "region"]]}

    def made_from(chosen: Specification) -> dict:
        return identity(screened, chosen, "table")  # type: ignore[arg-type]

    assert "decimals" not in made_from(build(table))["specification"]["table"]
    assert made_from(build({**table, "decimals": 0}))["specification"]["table"]["decimals"] == 0


def test_table_of_whole_numbers_is_published_in_whole_numbers(adjusted, monkeypatch, tmp_path) -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "a10": "AB",
            "a21": rng.choice(["A", "B", "C"], 120),
            "region": rng.choice(["north", "south"], 120),
            "turnover": np.rint(rng.lognormal(5, 1.2, 120)) + 1,
            "firm": "",
        }
    )
    chosen = specification(
        tmp_path, frame, decimals=None, hierarchies=None, dominance={"n": 1, "k": 25.0}, quality=OPEN
    )
    with monkeypatch.context() as before:  # earlier identities contained no software versions
        before.setattr(admission, "identity", lambda *given: unversioned(identity(*given)))
        content = adjusted(chosen)
    (file,) = sorted(Path(content["release"]).rglob("table/*.parquet"))
    assert str(pq.read_schema(file).field("turnover").type) == "int64"
    cells = pq.read_table(Path(content["report"]).parent / "cells.parquet").to_pandas()
    assert (cells["published"] != cells["original"]).any()
    assert audit(Path(content["release"])).passed
    quality = json.loads((Path(content["report"]).parent / "quality.json").read_text())
    assert quality["table"]["unit"] == 1
    assert quality["adjustment"]["solver"].startswith("HiGHS")
    # the earlier version has already published this release
    assert adjusted(chosen)["release_id"] == content["release_id"]
