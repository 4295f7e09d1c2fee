"""Tests of withdrawal: a transaction that the next command can finish."""

import json
import shutil

import pytest
from microguard.pipelines.audit.release import audit
from microguard.pipelines.publication import publish
from microguard.pipelines.publication.ledger import Ledger
from microguard.pipelines.publication.public_area import PublicArea
from microguard.pipelines.publication.storage import folder
from microguard.pipelines.withdraw import withdraw
from microguard.schemas.errors import SpecificationError

from tests.pipelines.releases import ID, Killed, contents, entry, kill, manifest, staged


def test_withdrawn_release_is_removed_and_remains_in_the_ledger(released):
    withdraw(str(released.public.release(ID)))
    assert contents(released) == set()
    assert Ledger(released).published() == []
    assert Ledger(released).ever_published("persons") == [ID]


def test_withdrawing_the_current_release_makes_the_previous_release_current(released):
    second = "f" * 32
    publish.publish(staged(released, second), manifest(second), released, entry(second), accepted=True)
    outcome = withdraw(str(released.public.release(second)))
    assert released.public.current() == ID
    assert outcome.content["current"] == ID
    assert ID in outcome.text
    assert "no current release" in withdraw(str(released.public.release(ID))).text
    assert not (released.public.folder / "current.json").exists()


def test_withdraw_finishes_a_killed_withdrawal(released, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(folder.shutil, "rmtree", kill)
        with pytest.raises(Killed):
            withdraw(str(released.public.release(ID)))
    record = released.record(ID)
    record.mkdir(exist_ok=True)
    (record / "quality.json").write_text(
        json.dumps({"release": {"public_area": str(released.public.folder)}})
    )
    assert "is withdrawn" in withdraw(str(record)).text
    assert contents(released) == set()


@pytest.mark.parametrize("step", ["remove", "set_current"])
@pytest.mark.parametrize("named", ["area", "specification", "folder"])
def test_withdraw_repeated_after_a_kill_withdraws_no_other_release(
    released, tmp_path, monkeypatch, step, named
):
    second = "f" * 32
    publish.publish(staged(released, second), manifest(second), released, entry(second), accepted=True)
    path = tmp_path / "release.toml"
    path.write_text(
        '[release]\nname = "persons"\nk = 3\n[input]\npath = "x.parquet"\n[variables]\n'
        'sex = { role = "quasi_identifier", kind = "nominal" }\n'
        '[publish]\npath = "lake/persons"\nevidence = "evidence/persons"\n'
    )
    release = released.public.release(second)
    argument = str({"area": released.public.folder, "specification": path, "folder": release}[named])
    after = getattr(PublicArea, step)

    def killed(area, *arguments):
        after(area, *arguments)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(PublicArea, step, killed)
        with pytest.raises(Killed):
            withdraw(argument)
    answer = withdraw(argument)
    assert (answer.content["release_id"], answer.content["current"]) == (second, ID)
    assert contents(released) == {ID, "current.json"}
    # a second withdrawal of the same release is accepted
    assert withdraw(str(release)).content["release_id"] == second
    argument = argument.replace(second, ID)
    with monkeypatch.context() as patched:
        patched.setattr(PublicArea, step, killed)
        with pytest.raises(Killed):
            withdraw(argument)
    assert withdraw(argument).content["release_id"] == ID  # the area no longer has a current release
    assert contents(released) == set()


def test_withdraw_refuses_a_copy_of_a_release(released):
    """The ledger would record a withdrawal and allow a publication, while the original remains public."""
    copy = released.public.folder.parent / "copy" / ID
    shutil.copytree(released.public.release(ID), copy)
    for place in (copy, copy.parent.parent / "nowhere" / ID):
        with pytest.raises(SpecificationError, match="another public area"):
            withdraw(str(place))
    assert Ledger(released).status(ID).event == "published"
    assert released.public.is_whole(ID)


def test_withdrawing_an_earlier_release_keeps_the_current_release(released):
    second = "f" * 32
    publish.publish(staged(released, second), manifest(second), released, entry(second), accepted=True)
    withdraw(str(released.public.release(ID)))
    assert released.public.current() == second
    assert audit(released.public.release(second)).passed
