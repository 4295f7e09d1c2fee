"""Tests of retention: only the newest releases of a name are kept, also after kills and failures."""

import json
from types import SimpleNamespace

import microguard.pipelines.release
import pytest
from microguard.pipelines.approval import approve
from microguard.pipelines.engine.command_result import CommandResult
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.gate.gate import Verdicts
from microguard.pipelines.job import Job
from microguard.pipelines.publication import publish, retention, withdrawal
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.ledger import Entry, Ledger
from microguard.pipelines.publication.manifest import DIFFERENCING
from microguard.pipelines.publication.pending_approval import PendingRelease, submit_for_approval
from microguard.pipelines.publication.public_area import PublicArea
from microguard.pipelines.publication.retention import expired_releases, retain
from microguard.pipelines.verification import Verified
from microguard.pipelines.withdraw import withdraw
from microguard.schemas.errors import SpecificationError

from tests.pipelines.microdata import specification
from tests.pipelines.releases import manifest, staged

A, B, C, D = (letter * 32 for letter in "abcd")
VERDICTS = Verdicts((), (), ())


def entry(release_id, keep=None, name="persons"):
    at = "2026-01-01T00:00:00+00:00"
    return Entry("published", release_id, name, at, {}, keep=keep, successive="accept")


def published(areas, *ids, keep=None):
    for each in ids:
        ready = staged(areas, each)
        publish.publish(ready, manifest(each), areas, entry(each, keep), accepted=True)


def folders(areas):
    return areas.public.releases()


@pytest.fixture
def areas(tmp_path):
    return Areas.from_places(tmp_path / "lake" / "persons", tmp_path / "evidence")


def test_retain_keeps_the_newest_releases_and_records_the_reason_for_withdrawals(areas):
    published(areas, A, B, C, keep=2)
    retained = retain(areas, "persons")
    assert (retained.withdrawn, retained.left) == ((A,), ())
    assert folders(areas) == [B, C]
    assert areas.public.current() == C
    gone = Ledger(areas).status(A)
    assert (gone.event, gone.note) == ("withdrawn", f"publish.keep = 2: superseded by release {C}")
    assert Ledger(areas).ever_published("persons") == [A, B, C]
    answer = retained.added_to(CommandResult("Published", {}))
    assert answer.content == {"withdrawn": [A]}
    assert A in answer.text
    assert retain(areas, "persons").added_to(CommandResult("Published", {})) == CommandResult("Published", {})


def test_retain_without_keep_withdraws_nothing_and_a_larger_keep_restores_nothing(areas):
    published(areas, A, B, keep=1)
    retain(areas, "persons")
    published(areas, C, keep=5)
    assert retain(areas, "persons").withdrawn == ()
    published(areas, D)
    assert retain(areas, "persons").withdrawn == ()
    assert folders(areas) == [B, C, D]


def test_retain_keeps_the_current_release_even_if_it_is_old(areas, monkeypatch):
    published(areas, A)
    with monkeypatch.context() as patched:
        # the run is killed before it sets the current release
        patched.setattr(PublicArea, "set_current", lambda *_: None)
        published(areas, B, keep=1)
    assert retain(areas, "persons").withdrawn == ()
    assert folders(areas) == [A, B]
    assert publish.finish_what_died(areas) == {A}
    assert areas.public.current() == B
    assert folders(areas) == [B]


def test_retain_counts_a_release_that_was_published_again_as_newest(areas):
    published(areas, A, B)
    published(areas, A, keep=1)
    assert retain(areas, "persons").withdrawn == (B,)
    assert areas.public.current() == A


def test_retain_ignores_other_names_and_other_public_areas(areas, tmp_path):
    elsewhere = Areas.from_places(tmp_path / "lake" / "other", areas.evidence)
    published(elsewhere, A)
    firms = Areas.from_places(tmp_path / "lake" / "firms", areas.evidence)
    publish.publish(staged(firms, D), manifest(D), firms, entry(D, name="firms"))
    published(areas, B, C, keep=1)
    assert retain(areas, "persons").withdrawn == (B,)
    assert (folders(elsewhere), folders(firms), folders(areas)) == ([A], [D], [C])


class Killed(BaseException):
    """Simulate SIGKILL: no later code runs."""


def kill(*_, **__):
    raise Killed


@pytest.mark.parametrize(
    ("module", "step"),
    [
        (retention, "withdraw_release"),
        (withdrawal, "remove_release"),
        (withdrawal, "forget_everywhere"),
        (PublicArea, "remove"),
    ],
)
def test_next_run_finishes_a_retention_that_was_killed(areas, monkeypatch, module, step):
    published(areas, A, B, C, keep=1)
    with monkeypatch.context() as patched:
        patched.setattr(module, step, kill)
        with pytest.raises(Killed):
            retain(areas, "persons")
    assert areas.public.current() == C
    with areas.lock():
        publish.finish_what_died(areas)
    assert folders(areas) == [C]
    assert "publish.keep" in Ledger(areas).status(A).note
    assert expired_releases(areas, "persons") == []


def test_failed_retention_keeps_the_publication_and_is_repeated(areas, monkeypatch):
    def full(*_):
        raise OSError("the text of the system")

    published(areas, A, B, C, keep=2)
    with monkeypatch.context() as patched:
        patched.setattr(PublicArea, "remove", full)
        retained = retain(areas, "persons")
        assert retained.left == (A,)
        answer = retained.added_to(CommandResult("Published", {"release_id": C}))
        assert answer.content == {"release_id": C, "not_withdrawn": [A]}
        assert "Readers may still find these releases" in answer.text
        assert areas.public.current() == C
        with pytest.raises(OSError):
            publish.finish_what_died(areas)
    assert folders(areas) == [A, B, C]
    publish.finish_what_died(areas)
    assert folders(areas) == [B, C]


def test_withdraw_accepts_a_release_that_retention_withdrew(areas):
    published(areas, A, B, keep=1)
    assert "is withdrawn" in withdraw(str(areas.public.release(A))).text
    assert folders(areas) == [B]


def waiting_beside_another(areas):
    """Return the release B, whose manifest states that another release of its name can be differenced with
    it.
    """
    stated = manifest(B) | {"limits": [DIFFERENCING]}
    return PendingRelease(staged(areas, B), stated, entry(B, keep=1), accepted=True)


def test_approve_applies_retention(areas, monkeypatch):
    published(areas, A)
    areas.record(B).mkdir(exist_ok=True)
    quality = {"release": {"public_area": str(areas.public.folder)}}
    (areas.record(B) / "quality.json").write_text(json.dumps(quality))
    submit_for_approval(waiting_beside_another(areas), areas)
    publish.finish_what_died(areas)
    assert folders(areas) == [A]
    outcome = approve(str(areas.record(B)), by="A. Steward", note="as last year")
    assert outcome.content["withdrawn"] == [A]
    assert folders(areas) == [B]
    assert Ledger(areas).status(B).by == "A. Steward"


def test_run_applies_retention_after_its_publication(areas, tmp_path):
    published(areas, A)
    spec = specification(tmp_path, publish={"path": "lake/persons", "successive": "accept", "keep": 1})
    job = Job(None, spec, areas, Progress(quiet=True))
    waiting, page = waiting_beside_another(areas), SimpleNamespace()
    page.write = lambda status: setattr(page, "event", status.event)
    release = Verified(None, waiting, None, page, VERDICTS)
    outcome = microguard.pipelines.release.publish_verified(job, release)
    assert outcome.content["withdrawn"] == [A]
    assert "publish.keep" in outcome.text
    assert folders(areas) == [B]
    assert page.event == "published"


def test_keep_is_refused_unless_successive_releases_are_accepted(tmp_path):
    accepted = {"successive": "accept"}
    assert specification(tmp_path, publish=accepted | {"keep": 12}).publish.keep == 12
    for keep in (0, -1, 1.5, True, "12"):
        with pytest.raises(SpecificationError, match=r"\[publish\] keep"):
            specification(tmp_path, publish=accepted | {"keep": keep})
    with pytest.raises(SpecificationError, match=r"not applicable unless \[publish\] series"):
        specification(tmp_path, publish={"keep": 12})
