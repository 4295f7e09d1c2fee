"""Audit everything that was published of an evidence area: who learns whose value within 1 %, counted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from microguard.pipelines.audit.joint.attackers import ATTACKERS, Learnt, learnt
from microguard.pipelines.audit.joint.build import Built, build
from microguard.pipelines.audit.joint.components import components, published_secrets
from microguard.pipelines.audit.joint.differences import MOST_APART
from microguard.pipelines.audit.joint.draws import repeated_draws, shared_draws
from microguard.pipelines.audit.joint.kept import Kept
from microguard.pipelines.audit.joint.measures import joined, relations
from microguard.pipelines.audit.joint.partitions import text_hash
from microguard.pipelines.audit.joint.releases import LOST, Release
from microguard.pipelines.audit.joint.statements import Statements, name_of, read
from microguard.pipelines.audit.joint.system import System

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
        Large sets of units, which were compared only with sets that differ from them by few units.
    skipped : int
        Pairs of large sets that were not compared, because there are too many.
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
    skipped: int = 0
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

    @property
    def verdict(self) -> str:
        """Return "red" if a limit is passed, "amber" if not everything was examined, otherwise "green"."""
        return "red" if self.faults() else "amber" if self.notes() else "green"

    def notes(self) -> tuple[str, ...]:
        """Return what the audit did not examine, or only in part."""
        texts = []
        if self.sampled:
            texts.append(f"{self.sampled} secrets in large components were examined by intervals only")
        if self.left_out:
            texts.append(
                f"{self.left_out} large sets of units were compared by differences of at most {MOST_APART} "
                "units only"
            )
        if self.skipped:
            texts.append(f"{self.skipped} pairs of large sets of units were not compared")
        if self.contradictory:
            texts.append(f"{self.contradictory} components have statements about different records")
        return tuple(texts)

    def content(self) -> dict[str, Any]:
        """Return all counts with their limits, and the verdict."""
        limits = {name: self.limit(name) for name in ATTACKERS}
        return {**vars(self), "verdict": self.verdict, "limits": limits, "faults": list(self.faults()),
                "notes": list(self.notes())}  # fmt: skip


_COUNTS = ("repeated_draws", "shared_draws", "comparable_draws", "contradictory", "sampled", "left_out",
           "skipped", "components", "solved", "not_compared")  # fmt: skip


def chance_limit(number: int, chance: float) -> int:
    """Return the number of successes that more of `number` trials exceed with at most `FALSE_ALARM`."""
    below, term, limit = 0.0, (1.0 - chance) ** number, 0
    while below + term < 1.0 - FALSE_ALARM and limit < number:
        below += term
        term *= (number - limit) / (limit + 1) * chance / (1.0 - chance)
        limit += 1
    return limit


def audit(releases: Sequence[Release], folder: Path | None = None, key: bytes = b"") -> AreaExposure:
    """Audit all releases of an evidence area together.

    Parameters
    ----------
    releases : sequence of Release
    folder : Path, optional
        Folder in the evidence area that keeps results, so that a later audit costs what changed.
    key : bytes
        The agency's secret, by which kept results are signed.
    """
    groups: dict[str, list[Release]] = {}
    for release in releases:
        groups.setdefault(release.group, []).append(release)
    total = AreaExposure(tuple(release.release_id for release in releases))
    for name in sorted(groups):
        kept = Kept(folder, f"{text_hash([name])[0]:016x}", key)
        total += _audit_group(groups[name], kept)
        kept.write()
    return total


def _audit_group(releases: Sequence[Release], kept: Kept) -> AreaExposure:
    try:
        names = [name_of(release, kept) for release in releases]
    except LOST:  # a file that cannot be read: nothing of an earlier audit is used
        kept, names = Kept(None, "", b""), [release.release_id for release in releases]
    whole = hashlib.sha256(json.dumps(names).encode()).hexdigest()
    known = kept.get("exposures", whole)
    if known is not None:
        kept.keep_all()
        return replace(AreaExposure(**known), not_compared=tuple(known["not_compared"]), solved=0)
    total = _audit_statements(read(releases, names, kept), len(releases), kept)
    kept.put("exposures", whole, asdict(total))
    return total


def _audit_statements(said: Statements, releases: int, kept: Kept) -> AreaExposure:
    total = AreaExposure(not_compared=said.lost)
    if releases < 2:
        return total
    built: dict[str, Built] = {}
    alone: dict[str, AreaExposure] = {}
    for measure in dict.fromkeys([*said.tables, *said.records]):
        tables, records = said.tables.get(measure, []), said.records.get(measure, [])
        values = np.unique(np.concatenate([np.zeros(0), *said.lists.get(measure, [])]))
        counts = any(t.release.table is not None and t.release.table.counts for t in tables)
        if not tables and len(records) < 2:
            continue
        built[measure] = build(tables, records, values, counts, kept)
        alone[measure] = AreaExposure()
        if len(tables) + len(records) > 1:
            shared, comparable = shared_draws(tables)
            alone[measure] = replace(
                _audit_system(built[measure].system, kept),
                repeated_draws=repeated_draws(tables),
                shared_draws=shared,
                comparable_draws=comparable,
                left_out=built[measure].left_out,
                skipped=built[measure].skipped,
            )
        total += alone[measure]
    for relation in relations(built):
        found = _audit_system(joined(relation, built), kept)
        for measure in relation.measures:
            found = found.beyond(alone[measure])
        total += replace(found, of=found.known)
    return total


def _audit_system(system: System, kept: Kept) -> AreaExposure:
    total = _published(*published_secrets(system))
    count = solved = 0
    for component in components(system):
        known = kept.get("answers", component.name)
        if known is None:
            known = kept.put("answers", component.name, list(astuple(learnt(component.system))))
            solved += 1
        total, count = total + Learnt.from_list(known), count + 1
    return AreaExposure(
        known=dict(zip(ATTACKERS, total.known, strict=True)),
        of=dict(zip(ATTACKERS, total.of, strict=True)),
        contradictory=total.contradictory,
        sampled=total.sampled,
        components=count,
        solved=solved,
    )


def _published(cells: np.ndarray, second: np.ndarray) -> Learnt:
    found = {"outsider": int(cells.sum()), "second": int(second.sum())}
    counts = tuple(found.get(name, 0) for name in ATTACKERS)
    return Learnt(counts, counts)


__all__ = ["AreaExposure", "audit"]
