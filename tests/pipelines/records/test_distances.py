"""Tests of releases of records clustered by the distances of their specification."""

import numpy as np
import pytest

from tests.pipelines.microdata import ROLES, persons, published, quality, run, specification
from tests.pipelines.records.ordered import ORDERED, SIZES, steps_moved, with_orders

pytestmark = pytest.mark.spark


def release(spark, folder, roles, original, **sections):
    """Return the published records and the measures of the original records."""
    original.to_parquet(folder / "data", index=False)
    method = {"effort": "fast", "representative": "mode"}
    _, areas = run(spark, specification(folder, roles, method=method, **sections), ("loss",))
    frame = published(areas)
    keys = [name for name, variable in roles.items() if variable["role"] in ("region", "quasi_identifier")]
    assert frame.groupby(keys, dropna=False).size().min() >= 3
    return frame, quality(areas)


def test_variable_with_a_larger_weight_has_less_information_loss(spark, tmp_path):
    rng = np.random.default_rng(4)
    original = persons(120).assign(age=lambda all: rng.uniform(size=len(all)))
    original["income"] = rng.permutation(original["age"])  # both releases differ only in their weights
    roles = ROLES | {"age": ROLES["age"] | {"variable_weight": 50.0}}
    frame, measured = release(spark, tmp_path, roles, original)
    assert len(frame) == len(original)
    loss = measured["loss"]["all"]["by_variable"]
    assert loss["age"] < 0.5 * loss["income"]


def test_ordinal_values_move_to_neighbours_and_unknown_values_reject_their_record(spark, tmp_path):
    rng = np.random.default_rng(4)
    original = with_orders(persons(150).drop(columns=["age", "income"]), rng)
    original.loc[7, "size"] = "CANARY"
    kept = {name: role for name, role in ROLES.items() if name not in ("age", "income", "sex")}
    roles = kept | {"sex": {"role": "other"}, **ORDERED}
    frame, measured = release(spark, tmp_path, roles, original, missing={"max_rejected": 1})
    assert measured["counts"]["rejected"]["value not in its order"] == 1
    assert set(frame["size"].dropna()) <= set(SIZES)
    steps = steps_moved(original, frame)
    assert steps["size"] < 0.8 * steps["grade"]


def test_hierarchical_values_move_at_low_cost_and_unknown_values_reject_their_record(spark, tmp_path):
    rng = np.random.default_rng(4)
    codes = [f"{section}{number}" for section in "abc" for number in range(4)]
    lines = [f"{code},{code[0]}" for code in codes]
    (tmp_path / "codes.csv").write_text("\n".join(["class,section", *lines]))
    original = persons(150).drop(columns=["age", "income"])
    n = len(original)
    costs = [
        [code, *("0" if code == o else "1" if code[0] == o[0] else "9" for o in codes)] for code in codes
    ]
    (tmp_path / "costs.csv").write_text("\n".join(map(",".join, [["", *codes], *costs])))
    original = original.assign(
        note=[f"n{i}" for i in range(n)],
        activity=rng.choice(codes, n),
        trade=rng.choice(codes, n),
        craft=rng.choice(codes, n),
    )
    original.loc[7, "craft"] = "CANARY"
    kept = {name: role for name, role in ROLES.items() if name not in ("age", "income", "sex")}
    roles = kept | {
        "sex": {"role": "other"},
        "activity": {"role": "quasi_identifier", "kind": "hierarchical", "hierarchy": "codes.csv"},
        "trade": {"role": "quasi_identifier", "kind": "nominal"},
        "craft": {"role": "quasi_identifier", "kind": "nominal", "costs": "costs.csv"},
    }
    frame, measured = release(spark, tmp_path, roles, original, missing={"max_rejected": 1})
    assert measured["counts"]["rejected"]["value not in its costs"] == 1
    assert set(frame["activity"]) | set(frame["craft"]) <= set(codes)
    before = original.set_index("note").loc[frame["note"]].reset_index()
    left = {}
    for name in ("activity", "trade", "craft"):
        changed = before[name] != frame[name]
        left[name] = (before[name].str[0] != frame[name].str[0])[changed].mean()
    assert max(left["activity"], left["craft"]) < 0.7 * left["trade"]
