"""Tests of cell suppression end to end: published and verified, refused with adjusted tables or if broken."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.methods.suppression import CellSuppression
from microguard.pipelines.verify import verify
from microguard.schemas.errors import GateRefused, ProtectionFailed

from tests.pipelines import turnover

UNIT = {"firm": {"role": "unit"}}
KINDS = ("outsider", "single", "pair", "unit")


def suppressing(folder, name="turnover", **table):
    """Return the specification of a suppressed table of the records in a folder."""
    keys = {"method": "suppression", "effort": None, **table}
    release = {"name": name, "source": "turnover"}
    spec = turnover.specification(folder, turnover.records(), UNIT, release, **keys)
    places = spec.publish.model_copy(update={"path": f"lake/{name}"})
    return spec.model_copy(update={"publish": places})


def test_suppressed_table_is_published_verified_and_not_published_again_by_another_method(
    adjusting, tmp_path
):
    released = adjusting(suppressing(tmp_path))
    release, evidence = Path(released["release"]), Path(released["report"]).parent
    manifest = json.loads((release / "manifest.json").read_text())
    assert manifest["method"] == {"name": "cell suppression", "attackers": list(KINDS)}
    (frame,) = [pq.read_table(path).to_pandas() for path in sorted(release.rglob("*.parquet"))]
    assert (frame["turnover"].isna() == (frame["status"] == "suppressed")).all()
    text = verify(str(release)).text
    assert "every sensitive cell is protected" in text
    public = (release / "report.html").read_text()
    assert "A suppressed cell is not empty and not zero" in public
    assert "sensitive cells:" not in public
    quality = json.loads((evidence / "quality.json").read_text())
    assert set(quality["intervals"]) == set(KINDS)
    assert all(row["too_narrow"] == 0 for row in quality["intervals"].values())
    page = (evidence / "report.html").read_text()
    assert "What readers lose" in page
    assert "The only contributor of a cell: the narrowest interval" in page
    with pytest.raises(GateRefused, match="published before with suppressed cells and true values"):
        adjusting(suppressing(tmp_path, "adjusted", method="adjustment", effort="fast"))
    with pytest.raises(GateRefused, match="a larger part of the table is suppressed than"):
        adjusting(suppressing(tmp_path, "narrow", quality={"max_suppressed": 0.01}))


def sensitive_alone(self, problem, key):
    """Suppress only sensitive cells."""
    return np.where(problem.table.sensitive, np.nan, problem.table.values)


def sensitive_published(self, problem, key):
    """Suppress nothing."""
    return problem.table.values


@pytest.mark.parametrize(
    ("broken", "metric"),
    [(sensitive_alone, "whose interval is too narrow"), (sensitive_published, "without their protection")],
)
def test_broken_suppression_publishes_nothing(adjusting, tmp_path, monkeypatch, broken, metric):
    monkeypatch.setattr(CellSuppression, "protect", broken)
    with pytest.raises(ProtectionFailed, match=metric):
        adjusting(suppressing(tmp_path))
    assert not (tmp_path / "lake" / "turnover" / "current.json").exists()
