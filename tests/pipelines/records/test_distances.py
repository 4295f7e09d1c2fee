"""Releases of records clustered by the distances that their specification asks for."""

import pytest

from tests.pipelines.microdata import ROLES, persons, published, quality, run, specification

pytestmark = pytest.mark.spark


def release(spark, folder, roles, original, **sections):
    """What is published, and measured, of the original records."""
    folder.mkdir()
    original.to_parquet(folder / "data", index=False)
    sections = {"method": {"effort": "fast", "representative": "mode"}} | sections
    _, areas = run(spark, specification(folder, roles, **sections))
    frame = published(areas)
    keys = [name for name, variable in roles.items() if variable["role"] in ("region", "quasi_identifier")]
    assert len(frame) == len(original)
    assert frame.groupby(keys, dropna=False).size().min() >= 3
    return frame, quality(areas)


def test_what_weighs_more_loses_less(spark, tmp_path):
    original = persons(120)
    loss = {}
    for heavy in ("age", "income"):
        weights = {heavy: ROLES[heavy] | {"variable_weight": 50.0}}
        _, measured = release(spark, tmp_path / heavy, ROLES | weights, original)
        loss[heavy] = measured["loss"]["all"]["by_variable"]
    assert loss["age"]["age"] < loss["income"]["age"]
    assert loss["income"]["income"] < loss["age"]["income"]
