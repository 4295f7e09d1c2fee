"""A table that waits while another one of the same cells is published gives none of them a second value."""

from __future__ import annotations

import pytest

from pipelines.approval import approve, reject
from pipelines.publication.areas import Areas
from schemas.errors import GateRefused
from tests.pipelines.published_tables import tables
from tests.pipelines.turnover import records, specification

pytestmark = pytest.mark.spark
RULE = {"dominance": None, "p_percent": 15.0}


def of_table(folder, name, path, seed, approval, **table):
    """A specification of the firms' table, or of another one of theirs."""
    chosen = specification(folder, records(), release={"name": name, "seed": seed}, **RULE, **table)
    publish = chosen.publish.model_copy(update={"path": path, "approval": approval})
    return chosen.model_copy(update={"publish": publish})


def test_a_table_that_waits_gives_no_second_value_to_cells_that_are_published_meanwhile(adjusted, tmp_path):
    areas = Areas.of(tmp_path / "lake", tmp_path / "evidence")
    waits = of_table(tmp_path, "turnover", "lake", 1, "required")
    waiting = adjusted(waits)["release_id"]
    sections = {"tables": [["a21"]], "hierarchies": None, "costs": "inverse"}
    (second,) = tables(adjusted(of_table(tmp_path, "sections", "elsewhere", 7, "none", **sections)))
    with pytest.raises(GateRefused, match="second values"):
        approve(str(areas.record(waiting)), by="A. Steward")
    assert areas.public.served() is None
    reject(str(areas.record(waiting)), by="A. Steward")
    anew = adjusted(waits)["release_id"]
    approve(str(areas.record(anew)), by="A. Steward")
    (first,) = tables({"release": str(areas.public.release(anew))})
    both = first[first["region"] == "Total"].merge(second, on="a21")
    both = both[(both["a21"] != "Total") | (both["a10"] == "Total")]
    assert (both["turnover_x"] == both["turnover_y"]).all()
