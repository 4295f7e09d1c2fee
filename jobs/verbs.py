"""What each verb calls: one pipeline function, imported when it is needed, which answers with an outcome."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from schemas.errors import ProtectionFailed
from schemas.not_built import refuse_verb

if TYPE_CHECKING:
    from pipelines.progress import Progress
    from schemas.specification import Specification


class Outcome(Protocol):
    """What a pipeline function answers."""

    def summary(self) -> str:
        """For a person, on standard output."""
        ...

    def as_json(self) -> dict[str, Any]:
        """For a program: plain values, no value of a record."""
        ...


@dataclass(frozen=True)
class Said:
    """The outcome of a verb whose pipeline answers with a sentence or a number."""

    text: str
    content: dict[str, Any]

    def summary(self) -> str:
        """The sentence."""
        return self.text

    def as_json(self) -> dict[str, Any]:
        """The same for a program."""
        return self.content


def call(arguments: argparse.Namespace, progress: Callable[[], Progress]) -> Outcome:
    """Run the verb of a parsed command line."""
    refuse_verb(arguments.verb)
    return VERBS[arguments.verb](arguments, progress)


def _specification(arguments: argparse.Namespace) -> Specification:
    from schemas.specification import read_specification

    return read_specification(arguments.specification, arguments.set)


def _protect(arguments: argparse.Namespace, progress: Callable[[], Progress]) -> Outcome:
    specification = _specification(arguments)
    from pipelines.release import protect

    return protect(specification, master=arguments.master, progress=progress())


def _check(arguments: argparse.Namespace, progress: Callable[[], Progress]) -> Outcome:
    specification = _specification(arguments)
    from pipelines.release import check

    return check(specification, master=arguments.master, progress=progress())


def _demo(arguments: argparse.Namespace, progress: Callable[[], Progress]) -> Outcome:
    from pipelines.demo import demo

    return demo(
        arguments.out,
        records=arguments.records,
        kind=arguments.kind,
        only_data=arguments.only_data,
        overrides=arguments.set,
        master=arguments.master,
        progress=progress(),
    )


def _draft(arguments: argparse.Namespace, progress: Callable[[], Progress]) -> Outcome:
    from pipelines.draft import draft

    return draft(arguments.input)


def _benchmark(arguments: argparse.Namespace, progress: Callable[[], Progress]) -> Outcome:
    from pipelines.benchmark import benchmark

    return benchmark(arguments.name, quick=arguments.quick)


def _clean(arguments: argparse.Namespace, progress: Callable[[], Progress]) -> Outcome:
    from pipelines.clean import clean, evidence_areas

    areas = [area for place in arguments.places or ["."] for area in evidence_areas(Path(place))]
    removed = clean(list(dict.fromkeys(areas)))
    return Said(f"Removed the work folders of {removed} run(s).", {"runs_removed": removed})


def _report(arguments: argparse.Namespace, progress: Callable[[], Progress]) -> Outcome:
    from pipelines.locate import locate
    from pipelines.report import report

    path = report(locate(arguments.release))
    return Said(f"The report is {path}.", {"report": str(path)})


def _verify(arguments: argparse.Namespace, progress: Callable[[], Progress]) -> Outcome:
    from pipelines.locate import locate
    from pipelines.verify import verify

    audit = verify(locate(arguments.release).folder)
    if not audit.passed:
        raise ProtectionFailed("The release is not what its manifest says. " + " ".join(audit.failures()))
    lines = [f"{finding.check}: {finding.detail}" for finding in audit.findings]
    checks = {finding.check: finding.detail for finding in audit.findings}
    return Said("\n".join(lines), {"release_id": audit.release_id, "passed": True, "checks": checks})


def _withdraw(arguments: argparse.Namespace, progress: Callable[[], Progress]) -> Outcome:
    from pipelines.locate import locate
    from pipelines.withdraw import withdraw

    located = locate(arguments.release)
    return Said(withdraw(located), {"release_id": located.release_id})


VERBS: dict[str, Callable[[argparse.Namespace, Callable[[], Progress]], Outcome]] = {
    "protect": _protect,
    "check": _check,
    "demo": _demo,
    "draft": _draft,
    "benchmark": _benchmark,
    "clean": _clean,
    "report": _report,
    "verify": _verify,
    "withdraw": _withdraw,
}
"""Verb -> the call; a verb that is not built yet has none."""
