"""Tests that readers cannot see a release that is pending approval."""

from microguard.pipelines.publication import publish
from microguard.pipelines.publication.ledger import Ledger
from microguard.pipelines.publication.pending_approval import (
    PendingRelease,
    is_pending,
    pending_release,
    submit_for_approval,
)

from tests.pipelines.releases import ID, contents, entry, manifest, staged


def submitted(areas, release_id=ID):
    """Submit a release whose evidence folder exists as after a run."""
    areas.record(release_id).mkdir(parents=True, exist_ok=True)
    pending = PendingRelease(staged(areas, release_id), manifest(release_id), entry(release_id), False)
    return submit_for_approval(pending, areas)


def test_submitting_a_new_release_removes_nothing(areas):
    assert not submitted(areas)
    assert is_pending(areas, ID)
    assert [each.event for each in Ledger(areas).entries()] == ["waiting"]


def test_submitting_a_published_release_with_damaged_files_withdraws_it_first(released):
    (file,) = (released.public.release(ID) / "microdata").glob("*.parquet")
    file.write_bytes(b"")
    assert submitted(released)
    assert (released.public.current(), contents(released)) == (None, set())
    events = [each.event for each in Ledger(released).entries()]
    assert events == ["intended", "published", "withdrawing", "withdrawn", "waiting"]
    assert is_pending(released, ID)
    waiting = pending_release(released, ID)
    publish.publish(waiting.staged, waiting.manifest, released, waiting.entry)
    assert publish.published_already(released, ID)


def test_release_that_readers_can_see_is_not_treated_as_pending(released):
    """Earlier versions left the damaged files of a pending release visible."""
    assert submitted(released)
    areas = released
    publish.publish(staged(areas), manifest(), areas, entry())
    Ledger(areas).append(entry().__class__(**{**vars(entry()), "event": "waiting"}))
    assert not is_pending(areas, ID)
