"""Simulate a public and an evidence area: calls fail, and the public area disappears and returns."""

from __future__ import annotations

import fcntl
import inspect
import json
import os
import random
import shutil
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from microguard.pipelines import rebuild_report
from microguard.pipelines.approval import approve, reject
from microguard.pipelines.engine.command_result import CommandResult, within
from microguard.pipelines.engine.files import write_atomically
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.gate.gate import Verdicts
from microguard.pipelines.job import Job
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.ledger import Entry
from microguard.pipelines.publication.pending_approval import PendingRelease
from microguard.pipelines.publication.publish import published_already
from microguard.pipelines.publication.stage import StagedFiles
from microguard.pipelines.release import publish_verified
from microguard.pipelines.verification import Verified
from microguard.pipelines.withdraw import withdraw
from microguard.schemas.errors import MicroguardError

from tests.contract.storage import look
from tests.contract.storage.disk import FAULTS, Clock, Disk, failing
from tests.contract.storage.places import Place
from tests.contract.storage.small_release import in_words, write_quality, write_staged
from tests.contract.storage.stand_ins import stand_ins
from tests.pipelines.releases import Killed

ANSWERS = (MicroguardError, OSError, KeyboardInterrupt, SystemExit)
KNOWS_LOST = "lost" in inspect.signature(withdraw).parameters
#: Actions and their frequencies.
DEEDS = {
    "publish": 8, "submit": 3, "approve": 5, "reject": 2, "withdraw": 6, "recover": 2,
    "unmount": 4, "mount": 4, "tear": 2, "damage": 2, "busy": 1, "lose": 3,
}  # fmt: skip


class Violation(AssertionError):
    """A state that must never occur."""


class World:
    """One case: a seed determines the actions and the faults.

    Parameters
    ----------
    root : Path
        An empty folder.
    seed : int
    kind : str
        Storage of the public area, one of `KINDS`.
    """

    def __init__(self, root: Path, seed: int, kind: str = "folder") -> None:
        self.chance = random.Random(seed)
        self.place = Place(kind, root / "lake").address
        self.lake, self.evidence, self.away = root / "lake", root / "evidence", root / "away"
        self.root, self.story = root, []
        self.verified: dict[str, dict[str, str]] = {}
        self.lost: set[str] = set()
        self.mounted = True
        self.point: dict[str, bytes] | None = None
        Clock.chance = self.chance

    @property
    def area(self) -> Path:
        """Return the folder of the public area, mounted or not."""
        return self.lake if self.mounted else self.away

    def live(self, deeds: int = 9) -> None:
        """Perform actions at random, then finish with calls that do not fail."""
        with stand_ins():
            for _ in range(deeds):
                deed = self.chance.choices(list(DEEDS), list(DEEDS.values()))[0]
                getattr(self, deed)()
                self._look(deed)
            self._end()

    # ------------------------------------------------------------------ actions

    def publish(self, approval: str = "none", again: str = "") -> None:
        """Publish a verified release, or submit it; publishing it `again` has no fault."""
        fresh = not again and (not self.verified or self.chance.random() < 0.7)
        release_id = again or (self._verify() if fresh else self.chance.choice(list(self.verified)))
        keep = self.chance.choice([None, None, 1, 2])
        ready, before = self._staged(release_id), look.status(self.evidence).get(release_id)

        def act(areas: Areas) -> CommandResult:
            if published_already(areas, release_id):
                return CommandResult("already published")
            entry = Entry("intended", release_id, "persons", "", {}, keep=keep, successive="accept")
            page = SimpleNamespace(
                write=lambda _: write_atomically(areas.record(release_id) / "report.html", "")
            )
            pending = PendingRelease(ready, {"release_id": release_id}, entry, True)
            release = Verified(None, pending, None, page, Verdicts((), (), ()))
            spec = SimpleNamespace(publish=SimpleNamespace(approval=approval))
            return publish_verified(Job(None, spec, areas, Progress(quiet=True), None), release)

        def call() -> CommandResult:
            areas = Areas.from_places(self.place, self.evidence)
            areas.public.require_writable()
            return within(rebuild_report.at_work(areas), lambda _: act(areas))

        told = f"publish {release_id[:4]} approval={approval} keep={keep}"
        answer = self._call(call, told, fails=not again)
        event = look.status(self.evidence).get(release_id)
        wanted = {"published", "waiting"} if approval == "required" else {"published"}
        self._agrees(answer, release_id, wanted, event, before)

    def submit(self) -> None:
        """Submit a release for approval."""
        self.publish("required")

    def approve(self) -> None:
        """Approve a pending release, or another one."""
        self._decide(approve, "published", "approve")

    def reject(self) -> None:
        """Reject a pending release, or another one."""
        self._decide(reject, "rejected", "reject")

    def _decide(self, verb, wanted: str, told: str) -> None:
        waiting = [each for each, event in look.status(self.evidence).items() if event == "waiting"]
        release_id = self._any(waiting)
        if release_id is not None:
            before = look.status(self.evidence)[release_id]
            answer = self._call(
                lambda: verb(str(self.evidence / release_id), by="A. Steward"), f"{told} {release_id[:4]}"
            )
            self._agrees(answer, release_id, {wanted}, look.status(self.evidence).get(release_id), before)

    def withdraw(self) -> None:
        """Withdraw a release by one of its names."""
        standing = [each for each, event in look.status(self.evidence).items() if event == "published"]
        release_id = self._any(standing)
        if release_id is None:
            return
        places = [self.evidence / release_id, self.lake / release_id, self.lake]
        named = self.chance.choice(places if self.place == str(self.lake) else places[:1])
        before = look.status(self.evidence)
        answer = self._call(lambda: withdraw(str(named)), f"withdraw {named.relative_to(self.root)}")
        if isinstance(answer, CommandResult):
            if "lost" in answer.content:
                return
            release_id = answer.content["release_id"]
        if named != self.lake or isinstance(answer, CommandResult):
            event = look.status(self.evidence).get(release_id)
            self._agrees(answer, release_id, {"withdrawn", "abandoned"}, event, before.get(release_id))

    def recover(self) -> None:
        """Finish the work of killed calls."""
        self._call(self._recovery, "recover")

    def unmount(self) -> None:
        """Unmount the public area: leave an empty folder, no folder, or another area in its place."""
        if not self._has_area():
            return
        self.lake.rename(self.away)
        self.mounted = False
        kind = self.chance.choice(["empty", "missing", "other"])
        if kind != "missing":
            self.lake.mkdir()
        if kind == "other":
            (self.lake / ".area.json").write_text(
                json.dumps({"area": f"{self.chance.getrandbits(128):032x}"})
            )
        self.point = look.snapshot(self.lake)
        self.story.append(f"unmount: {kind}")

    def mount(self) -> None:
        """Mount the public area again."""
        if self.mounted:
            return
        self._untouched()
        shutil.rmtree(self.lake, ignore_errors=True)
        self.away.rename(self.lake)
        self.mounted = True
        self.story.append("mount")

    def tear(self) -> None:
        """Truncate a small file, as other software or a faulty disk may."""
        place = self.chance.choice(["current.json", ".area.json", "ledger"])
        path = self.evidence / "ledger.jsonl" if place == "ledger" else self.lake / place
        if not self.mounted or not path.is_file():
            return
        self.story.append(f"tear {place}")
        if place == "ledger":
            with open(path, "ab") as file:  # the call was about to write this line
                file.write(b'{"event": "publ')
        else:
            os.truncate(path, self.chance.randint(0, max(0, path.stat().st_size - 1)))
            standing = "published" in look.status(self.evidence).values()
            answer = self._call(self._recovery, "recover a torn file", fails=False)
            if standing and not self.lost and not isinstance(answer, CommandResult):
                raise Violation(f"a torn {place} is not mended although a release proves which area it is")
            if place == "current.json" and not isinstance(answer, CommandResult):
                path.unlink()  # the message tells a person to do this

    def damage(self) -> None:
        """Damage a file of a published release, and run its job again, with or without approval."""
        events = look.status(self.evidence)
        known = sorted(
            each for each in look.visible(self.lake) - self.lost if events.get(each) == "published"
        )
        if not self.mounted or not known:
            return
        release_id = self.chance.choice(known)
        path = self.lake / release_id / "microdata/part-00000.parquet"
        before = path.read_bytes()
        path.write_bytes(b"")
        self.story.append(f"damage {release_id[:4]}")
        self.publish(self.chance.choice(["none", "required"]), release_id)
        if path.is_file() and not path.read_bytes():
            if not self.story[-1].startswith(
                ("   -> FileDamaged", "   -> AreaNotThere", "   -> GateRefused")
            ):
                raise Violation(f"{release_id[:4]} is damaged, and was neither published again nor removed")
            path.write_bytes(before)  # a refusal states the reason; a back-up restores the file

    def busy(self) -> None:
        """Lock the evidence area as another process: a call must report the lock and change nothing."""
        if not self.evidence.is_dir():
            return
        before, descriptor = look.snapshot(self.lake), os.open(self.evidence, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            answer = self._call(self._recovery, "recover while another runs", fails=False)
        finally:
            os.close(descriptor)
        if not isinstance(answer, MicroguardError) or look.snapshot(self.lake) != before:
            raise Violation("a call went on although another one holds the lock")

    def lose(self) -> None:
        """Declare an unmounted area lost; it may return later."""
        known = [each for each, event in look.status(self.evidence).items() if event == "published"]
        if self.mounted or not known or not KNOWS_LOST:
            return
        named = str(self.evidence / self.chance.choice(known))
        answer = self._call(lambda: withdraw(named, lost=True), "withdraw --lost")
        if not isinstance(answer, CommandResult):
            self.lost |= look.visible(self.away)
        elif self.chance.random() < 0.5:
            self._untouched()
            shutil.rmtree(self.away)
            shutil.rmtree(self.lake, ignore_errors=True)
            self.mounted, self.lost = True, set()
            self.story.append("the area is gone for good")
        else:
            self.lost |= look.visible(self.away)
            shutil.rmtree(self.lake, ignore_errors=True)  # remains of the interrupted call
            self.point = None

    # ---------------------------------------------------------- how calls are executed

    def _call(self, call, told: str, *, fails: bool = True):
        """Return the answer of a call that may fail at one of its operations; None if it was killed."""
        fault = self.chance.choice((*FAULTS, "unmounted", "unmounted"))
        at = self.chance.randint(0, 60) if fails and self.chance.random() < 0.7 else None
        disk = Disk(self.root, at, fault, self._vanish, self.chance)
        mounted = self.mounted
        self.story.append(told + ("" if at is None else f" [{fault} at {at}]"))
        try:
            with failing(disk):
                answer = call()
        except Killed:
            answer = None
        except ANSWERS as error:
            answer = error
        except Exception as error:
            raise Violation(f"a traceback: {type(error).__name__}: {error}") from error
        if disk.died:
            answer = None
        if not self.mounted:
            self._settle(vanished=mounted)
        self.story.append(f"   -> {in_words(answer)}")
        return answer

    def _recovery(self) -> CommandResult:
        with rebuild_report.at_work(Areas.from_places(self.place, self.evidence)):
            return CommandResult("done")

    def _vanish(self) -> None:
        if self._has_area():
            self.lake.rename(self.away)
            self.lake.mkdir()
            self.mounted, self.point = False, {}

    def _settle(self, *, vanished: bool) -> None:
        """Accept files that a call wrote while its area disappeared; a new area may replace a lost one."""
        if self.lost and look.is_known(self.lake, self.evidence) and not vanished:
            shutil.rmtree(self.away)
            self.mounted, self.lost = True, set()
        elif vanished or self.lost:
            self.point = look.snapshot(self.lake)

    def _has_area(self) -> bool:
        """Return whether the area is mounted and the ledger knows it."""
        return self.mounted and self.lake.exists() and look.is_known(self.lake, self.evidence)

    def _verify(self) -> str:
        release_id = f"{self.chance.getrandbits(128):032x}"
        self.verified[release_id] = {}
        write_quality(self.evidence / release_id, self.place)
        return release_id

    def _staged(self, release_id: str) -> StagedFiles:
        folder = Areas.from_places(self.place, self.evidence).work(release_id, "staging")
        write_staged(folder, release_id)
        self.verified[release_id] = look.contents(folder)
        return StagedFiles.from_folder(release_id, folder)

    def _any(self, likely: list[str]) -> str | None:
        known = list(look.status(self.evidence))
        if likely and self.chance.random() < 0.8:
            return self.chance.choice(likely)
        return self.chance.choice(known) if known else None

    # ----------------------------------------------------------------- invariants

    def _agrees(self, answer, release_id: str, wanted: set[str], event: str | None, before: str | None):
        """Check that an answer agrees with the state."""
        if answer is None:
            return
        if isinstance(answer, CommandResult) and event == "published":
            self.lost.discard(release_id)
        shown, led = release_id in look.visible(self.area) - self.lost, look.current(self.area) == release_id
        if isinstance(answer, CommandResult):
            if event not in wanted:
                raise Violation(f"the answer is {answer.text!r}, and the ledger says {event}")
            if shown != (event == "published"):
                there = "there" if shown else "not there"
                raise Violation(f"the answer is {answer.text!r}, and the release is {there}: {event}")
        elif f"{release_id} is {event}" in str(answer):
            return  # the message states the reason, and that the release is nevertheless published
        elif event == "abandoned" or before == "withdrawing":
            return  # the call finished the work of another call, and then failed
        elif event in wanted and event != before and event != "waiting" and (led or event != "published"):
            raise Violation(f"the answer is {in_words(answer)}, although the release is {event}")

    def _untouched(self) -> None:
        in_bucket = self.place != str(self.lake)  # an empty bucket does not exist; a probe may be left
        if look.changed(self.point, look.snapshot(self.lake), probes=in_bucket):
            raise Violation("something was written to the place of an area that is not there")

    def _look(self, deed: str) -> None:
        if not self.mounted:
            self._untouched()
        if deed == "tear":
            return
        with suppress(ValueError):  # current.json is torn
            if found := look.faults(self.area, self.evidence, self.verified, self.lost):
                raise Violation("; ".join(found))

    def _end(self) -> None:
        """Check that the next run recovers, and that repeated decisions keep their result."""
        self.mount()
        answer = self._call(self._recovery, "the next run", fails=False)
        identity = self.lake / ".area.json"
        if isinstance(answer, MicroguardError) and identity.is_file() and len(identity.read_bytes()) < 44:
            # The identity is torn, and no release identifies this area. The refusal names the file; a person
            # decides.
            return
        if not isinstance(answer, CommandResult):
            raise Violation(f"the next run does not recover: {in_words(answer)}")
        for release_id in sorted(self.lost & look.visible(self.lake)):
            self._again(withdraw, release_id)
        self.lost = set()
        events = look.status(self.evidence)
        unfinished = {each for each, event in events.items() if event in ("intended", "withdrawing")}
        if unfinished:
            raise Violation(f"the next run leaves {len(unfinished)} release(s) half done")
        found = look.faults(self.lake, self.evidence, self.verified, set())
        if found:
            raise Violation("; ".join(found))
        standing = [each for each, event in events.items() if event == "published"]
        if standing and look.current(self.lake) not in standing:
            raise Violation("readers are led nowhere although a release stands")
        for release_id, event in sorted(events.items()):
            verb = {"withdrawn": withdraw, "rejected": partial(reject, by="A. Steward")}.get(event)
            if verb is not None and release_id in self.verified:
                self._again(verb, release_id)

    def _again(self, verb, release_id: str) -> None:
        """Check that repeating a finished action succeeds."""
        named = str(self.evidence / release_id)
        answer = self._call(lambda: verb(named), f"{release_id[:4]}, asked again", fails=False)
        if not isinstance(answer, CommandResult):
            raise Violation(f"what is done already, asked again: {in_words(answer)}")
