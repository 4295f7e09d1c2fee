"""Audit of all published numbers of an evidence area: count the values that each attacker learns
within 1 %.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from microguard.pipelines.audit.joint.attackers import ATTACKERS, Learnt, learnt
from microguard.pipelines.audit.joint.build import Built, Table, build
from microguard.pipelines.audit.joint.components import Component, components, published_secrets
from microguard.pipelines.audit.joint.differences import MOST_APART
from microguard.pipelines.audit.joint.draws import repeated_draws, shared_draws
from microguard.pipelines.audit.joint.kept import Kept
from microguard.pipelines.audit.joint.limits import RATED, Rate, Rates, beyond_limits, limit_of
from microguard.pipelines.audit.joint.measures import joined, not_related, relations
from microguard.pipelines.audit.joint.partitions import text_hash
from microguard.pipelines.audit.joint.releases import LOST, Release
from microguard.pipelines.audit.joint.statements import Statements, name_of, read
from microguard.pipelines.audit.joint.system import System


@dataclass(frozen=True)
class AreaExposure:
    """Counts of secrets that a reader of all releases in an evidence area learns.

    Attributes
    ----------
    releases : tuple of str
        Ids of the audited releases.
    known, of : mapping of attacker to int
        Secrets learnt within 1 %, and secrets that the attacker tries to learn; see `attackers`.
    rates : mapping of text to Rates
        The same for each variable, for attackers with a positive limit, and for the draws in each of its
        periods and pairs of tables.
    repeated_draws : int
        Sensitive cells that were published with two values, whose mean is nearer to the true one.
    shared_draws, comparable_draws : int
        Sensitive cells with the same factor as in the last period, and cells that could be compared.
    contradictory : int
        Components whose statements cannot all describe the same records; only the statements that agree were
        examined.
    sampled : int
        Secrets that were examined by intervals only, because their component is too large for linear
        programs.
    left_out : int
        Large sets of units, which were compared only with sets that differ from them by few units.
    skipped : int
        Pairs of large sets that were not compared, because there are too many.
    revised : int
        Cells of the same units whose amounts differ, so that the units of one cell are uncertain.
    not_listed : int
        Sets of units whose multisets of list values were not enumerated, because there are too many.
    not_related : int
        Variables in periods that were not compared with all others for linear relations.
    without_units : int
        Releases of related numbers whose evidence does not identify the units; tables of counts are not
        included.
    counts_by_codes : int
        Tables of counts that were compared by codes only, because no evidence identifies their units.
    without_period : int
        Releases without a period next to releases with one.
    without_largest : int
        Sensitive cells of several units whose two largest contributions are not in the evidence.
    components, solved : int
        Components with secrets and two releases, and the components that had no stored result.
    not_compared : tuple of str
        Ids of releases whose published numbers or evidence are lost.
    """

    releases: tuple[str, ...] = ()
    known: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ATTACKERS, 0))
    of: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ATTACKERS, 0))
    rates: dict[str, Rates] = field(default_factory=dict)
    repeated_draws: int = 0
    shared_draws: int = 0
    comparable_draws: int = 0
    contradictory: int = 0
    sampled: int = 0
    left_out: int = 0
    skipped: int = 0
    revised: int = 0
    not_listed: int = 0
    not_related: int = 0
    without_units: int = 0
    counts_by_codes: int = 0
    without_period: int = 0
    without_largest: int = 0
    components: int = 0
    solved: int = 0
    not_compared: tuple[str, ...] = ()

    def __add__(self, other: AreaExposure) -> AreaExposure:
        """Add the counts of another variable or population."""
        counts: dict[str, Any] = {name: getattr(self, name) + getattr(other, name) for name in _COUNTS}
        for name in ("known", "of"):
            mine, theirs = getattr(self, name), getattr(other, name)
            counts[name] = {attacker: mine[attacker] + theirs[attacker] for attacker in ATTACKERS}
        return replace(self, **counts, rates={**self.rates, **other.rates})

    def limit(self, attacker: str) -> int:
        """Return the maximum number of secrets that an attacker may learn, by chance or as a share of all
        sets.
        """
        return limit_of(attacker, self.of[attacker])

    def faults(self) -> tuple[str, ...]:
        """Return one phrase for each exceeded limit; the phrases contain only counts, ids and names of
        variables.
        """
        phrases = [
            f"{self.known[name]} of {self.of[name]} secrets are known within 1 % to the attacker "
            f"{name!r} (limit {self.limit(name)}{self._of_variables(name)})"
            for name in ATTACKERS
            if self.known[name] > self.limit(name) or self._of_variables(name)
        ]
        if self.repeated_draws:
            phrases.append(
                f"{self.repeated_draws} sensitive cells have two different published values (limit 0)"
            )
        most = limit_of("draws", self.comparable_draws)
        if self.shared_draws > most or self._of_variables("draws"):
            phrases.append(
                f"{self.shared_draws} of {self.comparable_draws} sensitive cells have the same factor as in "
                f"the previous period (limit {most}{self._of_variables('draws')})"
            )
        if self.not_compared:
            phrases.append(f"releases cannot be compared with ({', '.join(self.not_compared)})")
        return tuple(phrases)

    def within_limits(self) -> tuple[str, ...]:
        """Return one phrase for each positive count that is within its limit."""
        phrases = [
            f"{self.known[name]} of {self.of[name]} secrets are known within 1 % to the attacker "
            f"{name!r} (limit {self.limit(name)})"
            for name in ATTACKERS
            if 0 < self.known[name] <= self.limit(name)
        ]
        most = limit_of("draws", self.comparable_draws)
        if 0 < self.shared_draws <= most:
            phrases.append(
                f"{self.shared_draws} of {self.comparable_draws} sensitive cells have the same factor as in "
                f"the previous period (limit {most})"
            )
        return tuple(phrases)

    def _of_variables(self, kind: str) -> str:
        """Return the names of the variables whose limit is exceeded, as text that `faults` appends to a
        phrase.
        """
        names = beyond_limits(self.rates, kind) if kind in RATED else []
        return f", passed by {', '.join(names)}" if names else ""

    def beyond(self, accepted: AreaExposure) -> AreaExposure:
        """Subtract the exposure of some releases from this one; releases that could not be compared remain
        listed.

        Secrets already learnt from the accepted releases are removed from both counts, so that they do not
        raise the limits.
        """
        left = {
            name: {kind: _left(rate, accepted.rates.get(name, {}).get(kind)) for kind, rate in rates.items()}
            for name, rates in self.rates.items()
        }
        return replace(
            self,
            known=_less(self.known, accepted.known),
            of=_less(self.of, accepted.known),
            rates=left,
            repeated_draws=max(0, self.repeated_draws - accepted.repeated_draws),
            shared_draws=max(0, self.shared_draws - accepted.shared_draws),
            comparable_draws=max(0, self.comparable_draws - accepted.shared_draws),
        )

    @property
    def safe(self) -> bool:
        """Return whether no limit is exceeded."""
        return not self.faults()

    @property
    def verdict(self) -> str:
        """Return "red" if a limit is exceeded, "amber" if not everything was examined, otherwise "green"."""
        return "red" if self.faults() else "amber" if self.notes() else "green"

    def notes(self) -> tuple[str, ...]:
        """Return sentences that describe what the audit did not examine, or examined only in part."""
        return tuple(text.format(getattr(self, name)) for name, text in _NOTES.items() if getattr(self, name))

    def content(self) -> dict[str, Any]:
        """Return all counts with their limits and the verdict, for a report."""
        limits = {name: self.limit(name) for name in ATTACKERS}
        return {**vars(self), "verdict": self.verdict, "limits": limits, "faults": list(self.faults()),
                "notes": list(self.notes())}  # fmt: skip


#: Sentences about what was not examined, by the attribute that contains its count.
_NOTES = {
    "sampled": "{} secrets in large components were examined by intervals only",
    "left_out": f"{{}} large sets of units were compared by differences of at most {MOST_APART} units only",
    "skipped": "{} pairs of large sets of units were not compared",
    "contradictory": "{} components have statements about different records",
    "revised": "{} cells of the same units have other amounts (revised); they were compared by codes only",
    "not_listed": "{} sets of units have too many combinations of list values to be enumerated",
    "not_related": "{} variables in periods were not compared with all others for sums and differences",
    "without_units": "{} releases have no units in their evidence; they were compared by codes only",
    "counts_by_codes": "{} frequency tables were compared by codes only, because the units of counts are not "
    "recorded",
    "without_period": (
        "{} releases have no release.period, so their codes were not compared with tables that have one"
    ),
    "without_largest": "{} sensitive cells have no largest contributions in their evidence",
}
_COUNTS = (*_NOTES, "repeated_draws", "shared_draws", "comparable_draws", "components", "solved",
           "not_compared")  # fmt: skip


def _less(counts: dict[str, int], accepted: dict[str, int]) -> dict[str, int]:
    return {name: max(0, counts[name] - accepted[name]) for name in counts}


def _left(rate: Rate, accepted: Rate | None) -> Rate:
    known = accepted[0] if accepted is not None else 0
    return max(0, rate[0] - known), max(0, rate[1] - known)


def audit(releases: Sequence[Release], folder: Path | None = None, key: bytes = b"") -> AreaExposure:
    """Audit all releases of an evidence area together for what they disclose.

    Parameters
    ----------
    releases : sequence of Release
    folder : Path, optional
        Folder in the evidence area with stored results, so that a later audit examines only what changed.
    key : bytes
        The agency's secret, with which stored results are signed.
    """
    groups: dict[str, list[Release]] = {}
    for release in releases:
        groups.setdefault(release.group, []).append(release)
    total = AreaExposure(tuple(release.release_id for release in releases))
    for name in sorted(groups):
        kept = Kept(folder, f"{text_hash([name])[0]:016x}", key)
        of_group = _audit_group(groups[name], kept)
        rates = {f"{variable} of {name}": each for variable, each in of_group.rates.items()}
        total += replace(of_group, rates=rates)
        kept.write()
    return total


def _audit_group(releases: Sequence[Release], kept: Kept) -> AreaExposure:
    try:
        names = [name_of(release, kept) for release in releases]
    except LOST:  # a file is unreadable, so no result of an earlier audit is reused
        kept, names = Kept(None, "", b""), [release.release_id for release in releases]
    whole = hashlib.sha256(json.dumps(names).encode()).hexdigest()
    known = kept.get("exposures", whole)
    if known is not None:
        kept.keep_all()
        rates = {
            name: {kind: (rate[0], rate[1]) for kind, rate in each.items()}
            for name, each in known["rates"].items()
        }
        return replace(AreaExposure(**known), releases=(), not_compared=(), rates=rates, solved=0)
    total = _audit_statements(read(releases, names, kept), len(releases), kept)
    if not total.not_compared:  # a file that could not be read is read again in the next audit
        kept.put("exposures", whole, asdict(total))
    return total


def _audit_statements(said: Statements, releases: int, kept: Kept) -> AreaExposure:
    total = AreaExposure(not_compared=said.lost)
    if releases < 2:
        return total
    built: dict[str, Built] = {}
    alone: dict[str, AreaExposure] = {}
    without_units: dict[bool, set[str]] = {False: set(), True: set()}
    without_period: set[str] = set()
    for measure in dict.fromkeys([*said.tables, *said.records]):
        tables, records = said.tables.get(measure, []), said.records.get(measure, [])
        values = np.unique(np.concatenate([np.zeros(0), *said.lists.get(measure, [])]))
        counts = any(t.release.table is not None and t.release.table.counts for t in tables)
        if not tables and len(records) < 2:
            continue
        built[measure] = build(tables, records, values, counts, kept)
        alone[measure] = AreaExposure()
        if len(tables) + len(records) > 1:
            unknown = without_units[counts]
            unknown |= {each.release.release_id for each in records if not each.partitions}
            unknown |= {each.release.release_id for each in tables if each.partition is None}
            without_period |= _without_period(
                [each.release for each in tables] + [each.release for each in records]
            )
            draws = shared_draws(tables)
            found = _rated(measure, _audit_system(built[measure].system, kept))
            alone[measure] = replace(
                found,
                rates=found.rates
                | {f"{measure} in {each}": {"draws": rate} for each, rate in draws.periods.items()}
                | {f"{measure} in {each}": {"draws": rate} for each, rate in draws.pairs.items()},
                repeated_draws=repeated_draws(built[measure].system),
                shared_draws=sum(rate[0] for rate in draws.periods.values()),
                comparable_draws=sum(rate[1] for rate in draws.periods.values()),
                left_out=built[measure].left_out,
                skipped=built[measure].skipped,
                revised=built[measure].revised,
                without_largest=sum(map(_without_largest, tables)),
            )
        total += alone[measure]
    total = replace(
        total,
        not_related=not_related(built),
        without_units=len(without_units[False]),
        counts_by_codes=len(without_units[True]),
        without_period=len(without_period),
    )
    for relation in relations(built):
        name = " and ".join(" ".join(term) for term in relation.terms)
        found = _rated(name, _beyond_measures(*joined(relation, built), kept))
        total += replace(found, of=found.known)
    return total


def _without_period(releases: Sequence[Release]) -> set[str]:
    """Return the ids of the releases that have no period, if other releases have one."""
    missing = {each.release_id for each in releases if not each.period}
    return missing if any(each.period for each in releases) else set()


def _without_largest(table: Table) -> int:
    """Return the number of sensitive amounts whose largest contributions are unknown, so that the attacker
    "second" cannot be examined.
    """
    cells, layout = table.cells, table.release.table
    if layout is None or layout.counts:
        return 0
    unknown = np.isnan(cells.second) | np.isnan(cells.largest)
    return int((cells.sensitive & unknown & ~(cells.contributors <= 1) & (cells.truth != 0)).sum())


def _rated(variable: str, exposure: AreaExposure) -> AreaExposure:
    """Store the number of secrets that attackers learn about a variable, if their limit is positive."""
    rates = {kind: (exposure.known[kind], exposure.of[kind]) for kind in RATED if kind in ATTACKERS}
    return replace(exposure, rates={variable: rates})


def _beyond_measures(system: System, apart: System, kept: Kept) -> AreaExposure:
    """Count the linked secrets that are known only through a relation between measures.

    Parameters
    ----------
    system, apart : System
        The measures of the relation, with and without the rows that link them.
    """
    linked = {each.name: each for each in components(system)}
    before = {each.name: each for each in components(apart)}
    new = _audit_components((each for name, each in linked.items() if name not in before), Learnt(), kept)
    old = _audit_components((each for name, each in before.items() if name not in linked), Learnt(), kept)
    return new.beyond(old)


def _audit_system(system: System, kept: Kept) -> AreaExposure:
    return _audit_components(components(system), _published(*published_secrets(system)), kept)


def _audit_components(some: Iterable[Component], total: Learnt, kept: Kept) -> AreaExposure:
    count = solved = 0
    for component in some:
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
        not_listed=total.not_listed,
        components=count,
        solved=solved,
    )


def _published(cells: np.ndarray, second: np.ndarray) -> Learnt:
    found = {"outsider": int(cells.sum()), "second": int(second.sum())}
    counts = tuple(found.get(name, 0) for name in ATTACKERS)
    return Learnt(counts, counts)


__all__ = ["AreaExposure", "audit"]
