"""Run random verbs, some of them killed, and compare the areas with a model after each verb.

A seed draws an agency (one or two specifications, their areas and ledger, a table format) and a dozen verbs.
After each verb the public folders are compared with what readers may see, and the ledgers with the decisions.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import microguard.pipelines.check as the_check
import numpy as np
from microguard.pipelines import start_job
from microguard.pipelines.adjust import adjust
from microguard.pipelines.approval import approve, pending, reject
from microguard.pipelines.engine.command_result import CommandResult
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.history import history
from microguard.pipelines.joint_audit import audit_source
from microguard.pipelines.protect import protect
from microguard.pipelines.verify import verify
from microguard.pipelines.withdraw import withdraw
from microguard.schemas.errors import GateRefused, InputRejected, ProtectionFailed, SpecificationError
from pyspark.sql import SparkSession

from tests.benchmarks.jobs import public_view as view
from tests.benchmarks.jobs.killed import killed_at
from tests.benchmarks.jobs.office import CANARY, Office, agency, expected, overtaken
from tests.benchmarks.registers.agency import warm_session
from tests.benchmarks.table import Table
from tests.pipelines.releases import Killed

#: Errors with a reason for the user why a verb did nothing.
ANSWERS = (SpecificationError, InputRejected, GateRefused, ProtectionFailed)
STEPS = 10
#: Part of every region's name, and first digits of every unit, which no message may contain.
SECRET = re.compile(CANARY + r"|\b1\d{6}\b")
#: Weights of the verbs, and additional weights if a release is pending.
VERBS = {
    "protect": 8, "rebase": 2, "approve": 1, "reject": 0, "withdraw": 4,
    "verify": 1, "audit": 1, "history": 1, "pending": 0, "check": 0.3,
}  # fmt: skip
WHERE_ONE_WAITS = {"approve": 10, "reject": 3, "pending": 1}
#: Verbs that change something; one in three is killed.
CHANGING, KILLS = ("protect", "rebase", "approve", "reject", "withdraw"), 1 / 3
#: Event by the beginning of a result text.
HAPPENED = {
    "Published": "published",
    "This job has already published": "already",
    "Nothing changes": "nothing new",
    "Verified": "waits",
    "This release is already verified": "waits already",
}
#: Events without a change that is visible to readers.
UNCHANGED = ("already", "nothing new", "waits", "waits already")


class VerbsJob:
    """One random agency and its verbs."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = np.random.default_rng([seed, 7])
        self.folder, self.endings = folder, Counter[tuple[str, str]]()
        folder.mkdir()
        self.offices, self.nights = agency(self.random, folder)

    def play(self, spark: SparkSession) -> None:
        """Run all verbs.

        Raises
        ------
        AssertionError
            With the unexpected state, and the verbs before it.
        """
        told: list[str] = []
        with _warm(spark):
            for _ in range(STEPS):
                office = self.offices[int(self.random.integers(len(self.offices)))]
                verb = self._verb(office)
                told.append(f"{verb} ({office.name})")
                try:
                    ending = self._step(office, verb)
                except AssertionError as error:
                    raise AssertionError(f"{error}\n  after {'; '.join(told)}") from error
                except Exception as error:
                    raise AssertionError(f"{error!r}\n  after {'; '.join(told)}") from error
                told[-1] = f"{verb} ({office.name}, {office.what}): {ending}"
                print(f"    {told[-1]}", file=sys.stderr, flush=True)

    def _verb(self, office: Office) -> str:
        """Draw the next verb; the first one publishes."""
        more = WHERE_ONE_WAITS if office.of("waits") else {}
        shares = np.array([share + more.get(verb, 0) for verb, share in VERBS.items()])
        first = not office.states and self.random.random() < 0.8
        return "protect" if first else str(self.random.choice(list(VERBS), p=shares / shares.sum()))

    def _step(self, office: Office, verb: str) -> str:
        before, calm = self._public(), office.calm
        target, call, allowed = self._drawn(office, verb)
        told = ""
        if verb in CHANGING and self.random.random() < KILLS:
            lines = int(self.random.integers(0, 4))
            steps = int(np.exp(self.random.uniform(0, np.log(40))))
            try:
                with killed_at(self.folder, lines, steps):
                    ending, outcome = self._ended(call)
            except Killed:
                self._shake(office, calm=False)
                self._adopt()
                self._look()
                self.endings[verb, "killed"] += 1
                told = f"killed after {lines} lines and {steps} steps"
                if self.random.random() < 0.3:
                    return told
                told, calm = f"{told}, then ", False
                ending, outcome = self._ended(call)
        else:
            ending, outcome = self._ended(call)
        self.endings[verb, ending] += 1
        if calm:
            assert ending in allowed, f"{verb} ended with {ending}, expected {allowed}: {self.said}"
            quiet = verb not in CHANGING or outcome is None or ending in UNCHANGED
            assert not quiet or self._public() == before, f"{verb}: {ending}, and the public area changed"
        else:
            self._adopt()
        if verb in CHANGING and ending != "SpecificationError":
            self._shake(office, calm=True)
        if outcome is not None:
            self._happened(office, verb, ending, target, outcome)
        self._look()
        return f"{told}{ending}"

    def _public(self) -> list[dict[str, str]]:
        return [view.checksums(office.public) for office in self.offices]

    def _shake(self, office: Office, *, calm: bool) -> None:
        """Update the model: after a kill, the next verb in the area completes all interrupted changes."""
        for each in self.offices:
            if each.evidence == office.evidence:
                each.calm = calm

    def _ended(self, call: Callable[[], CommandResult]) -> tuple[str, CommandResult | None]:
        self.said = ""
        try:
            outcome = call()
        except ANSWERS as error:
            self.said = str(error)
            assert "please report" not in self.said, self.said
            assert "\n" not in self.said, self.said
            assert not SECRET.search(self.said), self.said
            return type(error).__name__, None
        assert not SECRET.search(outcome.summary()), outcome.text
        happened = [what for text, what in HAPPENED.items() if outcome.text.startswith(text)]
        return (happened or ["done"])[0], outcome

    def _drawn(self, office: Office, verb: str) -> tuple[str, Callable[[], CommandResult], set[str]]:
        """Return the release, the verb, and its permitted results."""
        random, quiet = self.random, Progress(quiet=True)
        if verb in ("protect", "rebase"):
            self._changed(office)
            spec = office.spec
            if office.kind == "table":
                return "", lambda: adjust(spec, progress=quiet), expected(office, self.offices, verb)
            rebase = verb == "rebase"
            return (
                "",
                lambda: protect(spec, rebase=rebase, progress=quiet),
                expected(office, self.offices, verb),
            )
        if verb in ("approve", "reject"):
            known = office.of("waits") * 5 + [*office.states, "0" * 32]
            target = str(random.choice(known))
            folder = str(office.evidence / target)
            decide = approve if verb == "approve" else reject
            waits = office.states.get(target) == "waits"
            allowed = {"SpecificationError"} if not waits else {"done"}
            return (
                target,
                lambda: decide(folder, by="A. Steward"),
                allowed | overtaken(office, self.offices, verb, target),
            )
        if verb in ("withdraw", "verify"):
            standing = office.of("stands")
            target = str(random.choice([*standing * 3, *office.states, "0" * 32]))
            places = [office.public / target, office.evidence / target]
            if view.served(office.public) == target:
                places.append(office.public)
            place = str(places[int(random.integers(len(places)))])
            gone = verb == "withdraw" and office.states.get(target) in ("withdrawn", "abandoned")
            allowed = {"done"} if target in standing or gone else {"SpecificationError"}
            return target, lambda: (withdraw if verb == "withdraw" else verify)(place), allowed
        if verb == "check":
            self._write(office)
            spec = office.spec
            allowed = {"SpecificationError"} if office.kind == "table" else {"done"}
            return "", lambda: the_check.check(spec, progress=quiet), allowed
        spec = office.spec
        if verb == "audit":
            safe = office.kind in ("register", "append") and len(self.offices) == 1
            return "", lambda: audit_source(spec), {"done"} if safe else {"done", "GateRefused"}
        return "", lambda: {"history": history, "pending": pending}[verb](spec), {"done"}

    def _changed(self, office: Office) -> None:
        """Draw input, k and seed: the previous ones or others."""
        if self.random.random() < 0.6:
            office.night = int(self.random.integers(len(self.nights)))
        rare = (self.random.random(2) < 0.1) & bool(office.states)
        office.content["release"] |= {"k": 3 + int(rare[0]), "seed": 1 + int(rare[1])}
        self._write(office)

    def _write(self, office: Office) -> None:
        self.nights[office.night].to_parquet(self.folder / "input.parquet", index=False)

    # ---- the model

    def _happened(self, office: Office, verb: str, ending: str, target: str, outcome: CommandResult) -> None:
        answer = outcome.content
        if verb in ("protect", "rebase"):
            target = answer["release_id"]
            office.made[office.what] = target
            office.first = office.first or office.what[7:]
        if ending in ("already", "nothing new"):
            assert office.states.get(target) == "stands", f"{ending}, but release {target} does not stand"
        elif ending == "waits already":
            assert office.states.get(target) == "waits"
        elif ending == "waits":
            office.now(target, "waits")
        elif ending == "published" or verb == "approve":
            office.now(target, "stands")
            for outlived in office.of("stands")[: -office.content["publish"].get("keep", 100)]:
                office.states[outlived] = "withdrawn"
        elif verb in ("reject", "withdraw"):
            office.states[target] = {"reject": "rejected", "withdraw": "withdrawn"}[verb]
        if verb == "withdraw":
            assert answer["current"] == view.served(office.public)
        if verb == "pending":
            assert {row["release_id"] for row in answer["pending"]} == set(office.of("waits"))
        if verb == "history" and office.calm:
            said = {row["release"]: row["state"] for row in answer["releases"] if row["name"] == office.name}
            known = {each: state for each, state in office.states.items() if state in ("stands", "withdrawn")}
            assert said == known, f"history says {said}, known is {known}"

    def _adopt(self) -> None:
        """Update the model after a kill from the ledger."""
        words = {"published": "stands", "waiting": "waits", "intended": "half", "withdrawing": "half"}
        for office in self.offices:
            for release_id, line in view.events(office.evidence).items():
                if (line["name"], line["public"]) == (office.name, str(office.public)):
                    office.now(release_id, words.get(line["event"], line["event"]))

    # ---- invariants after each verb

    def _look(self) -> None:
        for office in self.offices:
            said = {each: line["event"] for each, line in view.events(office.evidence).items()}
            for release_id, state in office.states.items():
                words = {"stands": "published", "waits": "waiting", "half": said.get(release_id)}
                expected = words.get(state, state)
                assert said.get(release_id) == expected, (
                    f"the ledger says {said.get(release_id)}, not {state}"
                )
                page = office.evidence / release_id / "report.html"
                shown = page.exists() and "<strong>Published</strong>" in page.read_text()
                assert not shown or state == "stands" or not office.calm, (
                    f"a page says Published, it is {state}"
                )
        for public in {office.public for office in self.offices}:
            offices = [each for each in self.offices if each.public == public]
            self._look_at(public, offices, calm=all(each.calm for each in offices))

    def _look_at(self, public: Path, offices: list[Office], *, calm: bool) -> None:
        there, current = view.releases(public), view.served(public)
        standing = {each for office in offices for each in office.of("stands")}
        half = {each for office in offices for each in office.of("half")}
        for release_id in there:
            assert view.whole(public, release_id), f"half a release: {release_id}"
        assert current is None or current in there, "current.json names no release"
        assert standing <= there <= standing | half, f"there are {there}, standing {standing}"
        if not calm:
            return
        assert there == standing, f"there are {there}, standing {standing}"
        assert not view.hidden(public), f"left: {view.hidden(public)}"
        newest = {office.of("stands")[-1] for office in offices if office.of("stands")}
        assert current in newest or (not newest and current is None), f"current is {current}, newest {newest}"
        faults = list(view.faults_of_tables(public, standing))
        assert not faults, "; ".join(faults)
        for release_id in standing:
            smallest = view.smallest_class(public, release_id)
            if smallest is not None:
                k = view.manifest(public, release_id)["guarantee"]["k"]
                assert smallest >= k, f"{smallest} share a class, k = {k}"


@contextmanager
def _warm(spark: SparkSession) -> Iterator[None]:
    @contextmanager
    def shared(*_: object, **__: object) -> Iterator[SparkSession]:
        yield spark

    with patch.object(start_job, "session", shared), patch.object(the_check, "session", shared):
        yield


def random_verbs(seeds: range) -> Table:
    """Return the results of the verbs of all seeds.

    Raises
    ------
    AssertionError
        With the seed of the verbs that had an unexpected result.
    """
    endings: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder, warm_session(Path(folder)) as spark:
        for seed in seeds:
            job = VerbsJob(seed, Path(folder).resolve() / str(seed))
            try:
                job.play(spark)
            except AssertionError as error:
                raise AssertionError(f"verbs, seed {seed}: {error}") from error
            endings += job.endings
    rows = [(*each, count) for each, count in sorted(endings.items())]
    return Table("Random verbs", ("verb", "ended", "times"), rows)
