"""Audit everything that was published of an evidence area: who learns whose value within 1 %, counted."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from microguard.pipelines.audit.joint.attackers import ATTACKERS, Learnt, learnt
from microguard.pipelines.audit.joint.build import Records, Table, build
from microguard.pipelines.audit.joint.cells import read_cells
from microguard.pipelines.audit.joint.components import components, published_secrets
from microguard.pipelines.audit.joint.draws import repeated_draws, shared_draws
from microguard.pipelines.audit.joint.partitions import (
    MEMBERS,
    RecordStatements,
    read_contributors,
    read_members,
    read_region_totals,
    text_hash,
)
from microguard.pipelines.audit.joint.releases import LOST, Release

#: Chance of each secret to be learnt from safe releases by an attacker who guesses an interval; others must
#: learn nothing. A factor of the last period is near this period's with the chance "draws".
CHANCE = {"growth": 0.02, "draws": 0.1}
#: Share of the sets of units with a public list of values of which one multiset may remain.
MULTISETS = 0.05
#: Chance of an audit of safe releases to pass a limit by such guesses.
FALSE_ALARM = 1e-3


@dataclass(frozen=True)
class AreaExposure:
    """What readers of all releases of an evidence area learn, in counts.

    Attributes
    ----------
    releases : tuple of str
        Ids of the audited releases.
    known, of : mapping of attacker to int
        Secrets learnt within 1 %, and secrets that the attacker could learn; see `attackers`.
    repeated_draws : int
        Sensitive cells that were published with two values, whose mean is nearer to the true one.
    shared_draws, comparable_draws : int
        Sensitive cells whose factor is that of the last period, and cells that could be compared.
    contradictory : int
        Components whose statements cannot all be about the same records; those that agree were examined.
    sampled : int
        Secrets that were examined by intervals only, because their component is too large for linear
        programs.
    left_out : int
        Sets of units that were not compared with all others, because there are too many large ones.
    components, solved : int
        Components with secrets and two releases, and those that were not answered before.
    not_compared : tuple of str
        Ids of releases whose published numbers or evidence are lost.
    """

    releases: tuple[str, ...] = ()
    known: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ATTACKERS, 0))
    of: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ATTACKERS, 0))
    repeated_draws: int = 0
    shared_draws: int = 0
    comparable_draws: int = 0
    contradictory: int = 0
    sampled: int = 0
    left_out: int = 0
    components: int = 0
    solved: int = 0
    not_compared: tuple[str, ...] = ()

    def __add__(self, other: AreaExposure) -> AreaExposure:
        """Add the counts of another variable or population."""
        counts: dict[str, Any] = {name: getattr(self, name) + getattr(other, name) for name in _COUNTS}
        for name in ("known", "of"):
            mine, theirs = getattr(self, name), getattr(other, name)
            counts[name] = {attacker: mine[attacker] + theirs[attacker] for attacker in ATTACKERS}
        return replace(self, **counts)

    def limit(self, attacker: str) -> int:
        """Return how many secrets an attacker may learn: what chance explains, or a share of multisets."""
        if attacker == "list":
            return int(MULTISETS * self.of[attacker])
        return chance_limit(self.of[attacker], CHANCE[attacker]) if attacker in CHANCE else 0

    def faults(self) -> tuple[str, ...]:
        """Return one phrase for each limit that is passed, with counts and ids only."""
        phrases = [
            f"{self.known[name]} of {self.of[name]} secrets are known within 1 % to the attacker "
            f"{name!r} (limit {self.limit(name)})"
            for name in ATTACKERS
            if self.known[name] > self.limit(name)
        ]
        if self.repeated_draws:
            phrases.append(f"{self.repeated_draws} sensitive cells have two published values (limit 0)")
        most = chance_limit(self.comparable_draws, CHANCE["draws"])
        if self.shared_draws > most:
            phrases.append(
                f"{self.shared_draws} of {self.comparable_draws} sensitive cells have the factor of the last "
                f"period (limit {most})"
            )
        if self.not_compared:
            phrases.append(f"releases cannot be compared with ({', '.join(self.not_compared)})")
        return tuple(phrases)

    def beyond(self, accepted: AreaExposure) -> AreaExposure:
        """Return the exposure in excess of that of some releases; what cannot be compared stays."""
        known = {name: max(0, self.known[name] - accepted.known[name]) for name in ATTACKERS}
        return replace(
            self,
            known=known,
            repeated_draws=max(0, self.repeated_draws - accepted.repeated_draws),
            shared_draws=max(0, self.shared_draws - accepted.shared_draws),
        )

    @property
    def safe(self) -> bool:
        """Whether no limit is passed."""
        return not self.faults()

    def notes(self) -> tuple[str, ...]:
        """Return what the audit did not examine."""
        texts = []
        if self.sampled:
            texts.append(f"{self.sampled} secrets in large components were examined by intervals only")
        if self.left_out:
            texts.append(f"{self.left_out} large sets of units were compared by single differences only")
        if self.contradictory:
            texts.append(f"{self.contradictory} components have statements about different records")
        return tuple(texts)

    def content(self) -> dict[str, Any]:
        """Return all counts with their limits."""
        limits = {name: self.limit(name) for name in ATTACKERS}
        return {**vars(self), "limits": limits, "faults": list(self.faults()), "notes": list(self.notes())}


_COUNTS = ("repeated_draws", "shared_draws", "comparable_draws", "contradictory", "sampled", "left_out",
           "components", "solved", "not_compared")  # fmt: skip


def chance_limit(number: int, chance: float) -> int:
    """Return the number of successes that more of `number` trials exceed with at most `FALSE_ALARM`."""
    below, term, limit = 0.0, (1.0 - chance) ** number, 0
    while below + term < 1.0 - FALSE_ALARM and limit < number:
        below += term
        term *= (number - limit) / (limit + 1) * chance / (1.0 - chance)
        limit += 1
    return limit


def audit(releases: Sequence[Release], answers: Path | None = None) -> AreaExposure:
    """Audit all releases of an evidence area together.

    Parameters
    ----------
    releases : sequence of Release
    answers : Path, optional
        Folder in the evidence area that keeps the answers of components, so that only new ones are solved.
    """
    groups: dict[str, list[Release]] = {}
    for release in releases:
        groups.setdefault(release.group, []).append(release)
    total = AreaExposure(tuple(release.release_id for release in releases))
    for name in sorted(groups):
        known = _Answers(None if answers is None else answers / f"{text_hash([name])[0]:016x}.json")
        total += _audit_group(groups[name], known)
        known.write()
    return total


def _code() -> str:
    """Return the hash of the code of the audit, so that answers of other code are not used."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


class _Answers:
    """Answers of components by their names, kept in a file."""

    def __init__(self, path: Path | None) -> None:
        self._path, self._used = path, dict[str, Learnt]()
        self._known: dict[str, Learnt] = {}
        if path is not None and path.is_file():
            with suppress(ValueError, LookupError, TypeError, AttributeError):  # damaged: solved again
                content = json.loads(path.read_text(encoding="utf-8"))
                if content["code"] == _code():
                    self._known = {name: _learnt(**each) for name, each in content["answers"].items()}

    def get(self, name: str) -> Learnt | None:
        """Return the answer of a component that was solved before."""
        return self._known.get(name)

    def put(self, name: str, answer: Learnt) -> None:
        """Keep an answer."""
        self._used[name] = answer

    def write(self) -> None:
        """Write the answers that were used, in one step."""
        if self._path is None:
            return
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            answers = {name: asdict(each) for name, each in self._used.items()}
            json.dump({"code": _code(), "answers": answers}, file)
        fresh.replace(self._path)


def _learnt(known: list[int], of: list[int], sampled: int, contradictory: int) -> Learnt:
    return Learnt(tuple(known), tuple(of), sampled, contradictory)


def _audit_group(releases: Sequence[Release], answers: _Answers) -> AreaExposure:
    lost = []
    tables: dict[str, list[Table]] = {}
    records: list[tuple[int, Release, RecordStatements]] = []
    for position, release in enumerate(releases):
        try:
            if release.table is not None:
                cells = read_cells(release)
                units = read_contributors(release, position, cells)
                tables.setdefault(release.table.measure, []).append(Table(position, release, cells, units))
            elif release.series or (release.evidence / MEMBERS).is_dir():
                records.append((position, release, read_members(release, position)))
            else:
                records.append((position, release, read_region_totals(release)))
        except LOST:
            lost.append(release.release_id)
    total = AreaExposure(not_compared=tuple(lost))
    if len(releases) < 2:
        return total
    measures = [*tables, *(name for _, _, each in records for name in (*each.partitions, *each.totals))]
    for measure in dict.fromkeys(measures):
        of_tables = tables.get(measure, [])
        of_records = [
            Records(position, release, each.partitions.get(measure, []), each.totals.get(measure))
            for position, release, each in records
            if measure in each.partitions or measure in each.totals
        ]
        if len(of_tables) + len(of_records) < 2:
            continue
        lists = [each.lists[measure] for _, _, each in records if measure in each.lists]
        values = np.unique(np.concatenate(lists)) if lists else np.zeros(0)
        counts = any(t.release.table is not None and t.release.table.counts for t in of_tables)
        total += _audit_variable(of_tables, of_records, values, counts, answers)
    return total


def _audit_variable(
    tables: list[Table], records: list[Records], values: np.ndarray, whole: bool, answers: _Answers
) -> AreaExposure:
    built = build(tables, records, values, whole)
    total = _published(*published_secrets(built.system))
    count = solved = 0
    for component in components(built.system):
        answer = answers.get(component.name)
        if answer is None:
            answer = learnt(component.system)
            solved += 1
        answers.put(component.name, answer)
        total, count = total + answer, count + 1
    shared, comparable = shared_draws(tables)
    return AreaExposure(
        known=dict(zip(ATTACKERS, total.known, strict=True)),
        of=dict(zip(ATTACKERS, total.of, strict=True)),
        repeated_draws=repeated_draws(tables),
        shared_draws=shared,
        comparable_draws=comparable,
        contradictory=total.contradictory,
        sampled=total.sampled,
        left_out=built.left_out,
        components=count,
        solved=solved,
    )


def _published(cells: np.ndarray, second: np.ndarray) -> Learnt:
    found = {"outsider": int(cells.sum()), "second": int(second.sum())}
    counts = tuple(found.get(name, 0) for name in ATTACKERS)
    return Learnt(counts, counts)


__all__ = ["AreaExposure", "audit"]
