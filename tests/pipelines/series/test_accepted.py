"""A night that a steward accepted beside those before it: what it exposes stands, and no more is added."""

from __future__ import annotations

import pytest

from pipelines.audit_source import audit_source
from schemas.errors import GateRefused
from tests.pipelines.series.test_identifiers import anew
from tests.pipelines.series.test_register import Series, population

pytestmark = pytest.mark.spark


def test_after_an_accepted_rebase_the_series_goes_on_and_its_gate_holds(spark, tmp_path):
    series, people = Series(spark, tmp_path), population(84)
    series.night(people.iloc[:60])
    with pytest.raises(GateRefused, match="joint_below_k"):
        anew(series, people.iloc[5:60])
    anew(series, people.iloc[5:60], successive="accept")
    third = series.night(people.iloc[5:72])
    assert third["night"]["born"] == 12
    with pytest.raises(GateRefused, match="expose units together"):
        audit_source(series.spec)
    with pytest.raises(GateRefused, match="joint_below_k"):
        anew(series, people.iloc[10:84])
    assert series.areas.public.served() == third["release_id"]
