"""Tests that the gate refuses exact savings published with a diagnosis, and accepts bands."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.gate.gate import judge
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.uniques import UniquesMeasure
from microguard.schemas.errors import Failure
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.read import build_specification

from tests.attacks.records.known_number import attack

PERSONS = 2_000
"""With `SAVINGS`, the file of the find: 2,000 persons, of whom some have no savings."""
ROLES = {
    "region": {"role": "region"},
    "age": {"role": "quasi_identifier", "kind": "numeric"},
    "savings": {"role": "sensitive"},
    "diagnosis": {"role": "sensitive"},
}


def persons() -> pd.DataFrame:
    """Return persons whose ages are already protected: ten persons have one age, like a class."""
    random = np.random.default_rng(8)
    savings = np.round(random.lognormal(9.0, 1.2, PERSONS) * (random.random(PERSONS) < 0.8), 0)
    return pd.DataFrame(
        {
            "region": np.arange(PERSONS) % 5,
            "age": 20.0 + (np.arange(PERSONS) // 50) % 40,
            "savings": savings,
            "diagnosis": random.choice(["flu", "asthma", "migraine", "none"], PERSONS),
        }
    )


def in_bands(frame: pd.DataFrame) -> pd.DataFrame:
    """Return savings in bands of two hundred thousand."""
    return frame.assign(savings=np.floor(frame["savings"] / 200_000) * 200_000)


def specification(folder: Path, accept: dict[str, str] | None = None) -> Specification:
    """Return a release of these persons with two sensitive columns."""
    return build_specification(
        {
            "release": {"name": "persons", "k": 3},
            "input": {"path": str(folder / "persons.parquet")},
            "variables": ROLES,
            "quality": {"accept": accept or {}},
            "publish": {"path": str(folder / "lake"), "evidence": str(folder / "evidence")},
        },
        folder,
    )


def failures(spark, frame: pd.DataFrame, spec: Specification) -> tuple[Failure, ...]:
    """Return the reasons for which the gate refuses a release of these records."""
    screened = SimpleNamespace(frame=None, remaining=len(frame), untouched=SimpleNamespace(ranges=None))
    comparison = Comparison(spec, screened, None, spark.createDataFrame(frame), len(frame), {}, {})
    section = UniquesMeasure().compute(comparison)
    return judge(
        "release", tuple(UniquesMeasure().limits(spec)), UniquesMeasure().metrics(section, comparison)
    ).failures


def test_control_exact_savings_disclose_the_diagnoses_of_most_persons() -> None:
    found = attack(persons(), persons(), ["region", "savings"], "diagnosis")
    assert found.read == found.alone > 0.6 * found.persons


def test_savings_in_bands_disclose_hardly_any_diagnosis() -> None:
    bands = in_bands(persons())
    assert attack(bands, bands, ["region", "savings"], "diagnosis").alone < 0.01 * PERSONS


def test_gate_refuses_exact_savings_with_diagnoses_and_states_what_to_do(spark, tmp_path: Path) -> None:
    (failure,) = failures(spark, persons(), specification(tmp_path))
    reason = str(failure)
    assert reason.startswith("unique_with_number of savings is 0.")
    for word in ("round it", "bands", "leave it out", "quality.accept"):
        assert word in reason


@pytest.mark.parametrize("written", ["a mark among numbers", "dates", "texts of dates", "times"])
def test_gate_refuses_a_nearly_unique_column_in_any_format(spark, tmp_path: Path, written: str) -> None:
    frame = persons()
    savings = frame["savings"]
    days = pd.Timestamp("1990-01-01") + pd.to_timedelta(savings.rank(method="dense") * 3, unit="D")
    frame["savings"] = {
        "a mark among numbers": savings.astype(str).where(savings > 0, "NA"),
        "dates": days.dt.date,
        "texts of dates": days.dt.strftime("%d.%m.%Y"),
        "times": days + pd.to_timedelta(7, unit="h"),
    }[written]
    (failure,) = failures(spark, frame, specification(tmp_path))
    assert str(failure).startswith("unique_with_number of savings is 0.")


def test_control_gate_counts_texts_with_letters_and_does_not_limit_them(spark, tmp_path: Path) -> None:
    frame = persons()
    frame["savings"] = "S" + frame["savings"].astype(str)
    assert failures(spark, frame, specification(tmp_path)) == ()


def test_gate_accepts_bands_and_columns_that_a_steward_accepted_by_name(spark, tmp_path: Path) -> None:
    assert failures(spark, in_bands(persons()), specification(tmp_path)) == ()
    accepted = specification(tmp_path, {"max_unique_published": "no other sensitive column, the steward"})
    assert failures(spark, persons(), accepted) == ()
