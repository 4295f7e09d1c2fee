"""Tests of a rebased series: it is refused, or a steward accepts it without further exposure."""

from __future__ import annotations

import pytest
from microguard.pipelines.joint_audit import audit_source
from microguard.schemas.errors import GateRefused

from tests.pipelines.series.test_identifiers import anew
from tests.pipelines.series.test_register import Series, population

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("audited", [False, pytest.param(True, marks=pytest.mark.long)])
def test_rebase_is_audited_with_the_series_and_the_gate_limits_updates_after_an_accepted_rebase(
    spark, tmp_path, monkeypatch, audited
):
    series, people = Series(spark, tmp_path), population(84)
    series.measures = ()
    first = series.night(people.iloc[:60])["release_id"]
    with monkeypatch.context() as patched:  # a series remains one source under every source name
        plain = series.specified()
        release = plain.release.model_copy(update={"source": "population-register"})
        otherwise = plain.model_copy(update={"release": release})
        patched.setattr(series, "specified", lambda: otherwise)
        with pytest.raises(GateRefused, match=f"(?s)that fewer than k units share.*{first}"):
            anew(series, people.iloc[5:60])
        assert audit_source(otherwise).content["releases"] == (first,)
    current = anew(series, people.iloc[5:60], successive="accept")["release_id"]
    if audited:  # a smaller register of the same kind is audited in attacks/records/test_rebase.py
        later = series.night(people.iloc[5:72])
        assert later["night"]["born"] == 12
        current = later["release_id"]
        with pytest.raises(GateRefused, match="together expose units"):
            audit_source(series.spec)
    with pytest.raises(GateRefused, match="that fewer than k units share"):
        anew(series, people.iloc[10:84])
    assert series.areas.public.current() == current
