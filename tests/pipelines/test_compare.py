"""Comparing several k: what each costs and leaves open, on a sample, with nothing published."""

from contextlib import contextmanager

import pytest

from pipelines import run as module
from pipelines.compare import compare
from pipelines.engine.progress import Progress
from schemas.errors import SpecificationError
from tests.pipelines.microdata import persons, specification


@pytest.mark.parametrize("k", ["", "3,x", "1", "3;5", "3,,5"])
def test_what_is_no_list_of_k_is_refused_before_a_session_starts(k, tmp_path):
    with pytest.raises(SpecificationError, match="--k"):
        compare(specification(tmp_path), k=k, progress=Progress(quiet=True))


@pytest.mark.spark
def test_a_larger_k_costs_more_and_leaves_less_open(spark, tmp_path, monkeypatch):
    @contextmanager
    def shared(private, master, input_path, *, clustering):
        yield spark

    monkeypatch.setattr(module, "session", shared)
    persons(90).to_parquet(tmp_path / "data", index=False)
    spec = specification(tmp_path, method={"effort": "fast"})
    outcome = compare(spec, k="3, 8", progress=Progress(quiet=True))
    small, large = outcome.content["compared"]
    assert (small["k"], large["k"]) == (3, 8)
    assert small["information_loss"] < large["information_loss"]
    assert small["homogeneous"] >= large["homogeneous"]
    assert small["unique_jointly"] > 0
    assert not (tmp_path / "lake").exists()
    assert (tmp_path / "evidence" / "compare" / "compare.svg").read_text().startswith("<svg")
    assert list((tmp_path / "evidence" / ".work").iterdir()) == []
