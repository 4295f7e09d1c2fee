"""Tests of `compare`: it measures loss and risk for several k on a sample, and publishes nothing."""

from contextlib import contextmanager

import pytest
from microguard.pipelines import start_job as module
from microguard.pipelines.compare import _conclusion, compare
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.tables.method_comparison import MethodOnTable
from microguard.schemas.errors import SpecificationError

from tests.pipelines.microdata import ROLES, persons, specification

FAST = {"effort": "fast"}


@pytest.mark.parametrize("k", ["", "3,x", "1", "3;5", "3,,5"])
def test_compare_refuses_an_invalid_list_of_k_before_a_session_starts(k, tmp_path):
    with pytest.raises(SpecificationError, match="--k"):
        compare(specification(tmp_path), k=k, progress=Progress(quiet=True))


@pytest.fixture
def session(spark, monkeypatch):
    """Return the session of the tests to a verb that starts a session."""

    @contextmanager
    def shared(private, master, input_path, *, clustering):
        yield spark

    monkeypatch.setattr(module, "session", shared)


@pytest.mark.spark
def test_compare_shows_more_loss_and_less_risk_for_a_larger_k(session, tmp_path):
    persons(90).to_parquet(tmp_path / "data", index=False)
    spec = specification(tmp_path)
    outcome = compare(spec, k="3, 8", progress=Progress(quiet=True))
    small, large = outcome.content["compared"]
    assert (small["k"], large["k"]) == (3, 8)
    assert small["information_loss"] < large["information_loss"]
    assert small["homogeneous"] >= large["homogeneous"]
    assert small["unique_jointly"] > 0
    assert not (tmp_path / "lake").exists()
    assert (tmp_path / "evidence" / "compare" / "compare.svg").read_text().startswith("<svg")
    assert list((tmp_path / "evidence" / ".work").iterdir()) == []


@pytest.mark.spark
def test_compare_measures_choices_on_the_same_records_with_their_exceeded_limits(
    session, tmp_path, monkeypatch
):
    monkeypatch.setattr("microguard.pipelines.compare.SAMPLE", 120)
    persons(200).to_parquet(tmp_path / "data", index=False)
    without = ROLES | {"note": {"role": "identifier"}}
    numeric = ROLES | {"sex": {"role": "identifier"}}
    roles = {"without the note": without, "numbers alone": numeric}
    choices = {name: specification(tmp_path, each, method=FAST) for name, each in roles.items()}
    spec = specification(tmp_path, method=FAST)
    outcome = compare(spec, k="3", choices=choices, progress=Progress(quiet=True))
    rows = outcome.content["compared"]
    assert [(row["choice"], row["k"]) for row in rows] == [(choice, 3) for choice in ("", *choices)]
    given, bare, numbers = rows
    # the weight alone makes most records unique
    assert given["unique_jointly"] >= bare["unique_jointly"] > 0.05
    assert {"unique jointly", "unique published of note"} <= set(given["broken"])
    assert "unique published of note" not in bare["broken"]
    assert bare["information_loss"] == pytest.approx(
        given["information_loss"], rel=0.02
    )  # both choices are computed on the same records
    assert numbers["information_loss"] < given["information_loss"]
    text = outcome.summary()
    assert "as specified" in text
    assert "limits broken" in text
    picture = (tmp_path / "evidence" / "compare" / "compare.svg").read_text()
    assert all(name in picture for name in ("as specified", *choices))


@pytest.mark.parametrize(
    ("given_away", "lines"),
    [
        (0, ["A value in every cell, and totals that add up: adjustment.",
             "Only true values, in fewer cells: suppression.",
             "Least mean error of a reader: suppression."]),
        (2, ["Gives sensitive cells away, so that it protects less: suppression (2).",
             "A value in every cell, and totals that add up: adjustment.",
             "Least mean error of a reader: adjustment."]),
    ],
)  # fmt: skip
def test_compare_of_tables_concludes_what_each_method_is_for(given_away, lines):
    rows = [
        MethodOnTable("adjustment", 0.0, 0.2, 0.09, 1.0, 0.02, 0, 0),
        MethodOnTable("cell_key", 0.0, 0.8, 0.2, 1.0, 0.1, 7, 0),
        MethodOnTable("suppression", 0.2, 0.0, 0.05, 0.7, 0.01, 0, given_away),
        MethodOnTable("rounding", reason="is for counts"),
    ]
    assert _conclusion(rows) == lines


def test_compare_refuses_a_choice_for_another_file(tmp_path):
    other = specification(tmp_path, input={"path": "elsewhere"})
    with pytest.raises(SpecificationError, match="--choice"):
        compare(specification(tmp_path), choices={"x": other}, progress=Progress(quiet=True))
