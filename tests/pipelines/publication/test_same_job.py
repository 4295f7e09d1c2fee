"""Tests of a repeated job after a solver upgrade: its release is found, or a second release is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from microguard.pipelines.publication import publish
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.identity import SOFTWARE
from microguard.pipelines.publication.ledger import Ledger
from microguard.pipelines.publication.same_job import ids_of_job, refuse_same_job
from microguard.pipelines.publication.withdrawal import withdraw_release
from microguard.schemas.errors import GateRefused
from microguard.schemas.specification.model import Specification

from tests.pipelines.releases import entry, manifest, staged
from tests.schemas.specification.test_table import build

TABLE = {"value": "turnover", "tables": [["a21", "region"]]}
THEN, NOW = ({"highspy": number, "numpy": "2.2.0"} for number in ("1.9.0", "1.15.1"))


def made_from(software: dict[str, str] | None = NOW, **table: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"content": "table", "seed": 1, "specification": {"table": {**TABLE, **table}}}
    return found if software is None else {**found, SOFTWARE: software}


def chosen(**table: Any) -> Specification:
    """Return a specification whose releases have the name of `entry`."""
    found = build({**TABLE, **table})
    return found.model_copy(update={"release": found.release.model_copy(update={"name": "persons"})})


def published(areas: Areas, identity: dict[str, Any], event: str = "published") -> str:
    release_id = areas.release_id(identity)
    line = replace(entry(release_id), identity=identity)
    if event == "published":
        publish.publish(staged(areas, release_id), manifest(release_id), areas, line)
    else:
        Ledger(areas).append(replace(line, event=event))
    return release_id


def refusal(areas: Areas, identity: dict[str, Any], specification: Specification) -> str:
    with pytest.raises(GateRefused) as caught:
        refuse_same_job(areas, identity, specification, areas.release_id(identity))
    assert caught.value.exit_code == 4
    return str(caught.value)


@pytest.mark.parametrize("successive", ["refuse", "accept"])
def test_refuse_same_job_refuses_a_release_by_another_solver(areas, successive) -> None:
    release_id = published(areas, made_from(THEN))
    specification = chosen()
    permission = specification.publish.model_copy(update={"successive": successive})
    message = refusal(areas, made_from(NOW), specification.model_copy(update={"publish": permission}))
    for part in (
        release_id,
        "same input, k, seed and specification",
        "highspy 1.9.0 then, and highspy 1.15.1",
    ):
        assert part in message
    assert "numpy" not in message
    assert "microguard withdraw" in message


def test_refuse_same_job_refuses_until_a_pending_release_is_decided(areas) -> None:
    release_id = published(areas, made_from(THEN), "waiting")
    message = refusal(areas, made_from(NOW), chosen())
    assert "waits for approval" in message
    assert f"microguard approve {areas.record_place(release_id)}" in message


def test_refuse_same_job_ignores_withdrawn_releases_and_other_input(areas, monkeypatch) -> None:
    withdrawn = made_from(THEN)
    published(areas, withdrawn)
    with areas.public.lock():
        withdraw_release(replace(entry(areas.release_id(withdrawn)), identity=withdrawn), areas)
    monkeypatch.setattr(publish, "refuse_joint_exposure", lambda *_: None)  # these releases have no evidence
    published(areas, {**made_from(THEN), "fingerprint": "of another input"})
    refuse_same_job(areas, made_from(NOW), chosen(), areas.release_id(made_from(NOW)))


def test_ids_of_job_include_the_id_without_versions(areas) -> None:
    before = published(areas, made_from(None))
    now, unversioned = ids_of_job(areas, made_from(NOW))
    assert (unversioned, publish.published_already(areas, unversioned)) == (before, True)
    assert now not in (before, ids_of_job(areas, made_from(THEN))[0])


def test_refuse_same_job_names_the_earlier_default_of_decimals(areas) -> None:
    published(areas, made_from(None))
    message = refusal(areas, made_from(NOW, decimals=0), chosen())
    assert "table.decimals was 2 by default" in message
    # a person edits the file
    refuse_same_job(areas, made_from(NOW, decimals=0), chosen(decimals=0), "another")
