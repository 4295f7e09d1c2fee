"""What each verb calls: one pipeline function, imported when it is needed, which answers with an outcome."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from schemas.not_built import refuse_verb

if TYPE_CHECKING:
    from pipelines.engine.outcome import Outcome
    from pipelines.engine.progress import Progress
    from schemas.specification.model import Specification


def call(arguments: argparse.Namespace, progress: Callable[[], Progress]) -> Outcome:
    """Run the verb of a parsed command line."""
    refuse_verb(arguments.verb)
    return VERBS[arguments.verb](arguments, progress)


def _specification(arguments: argparse.Namespace) -> Specification:
    from schemas.specification.read import read_specification

    return read_specification(arguments.specification, arguments.set)


def _protect(arguments: argparse.Namespace, progress: Callable[[], Progress]) -> Outcome:
    specification = _specification(arguments)
    from pipelines.protect import protect

    return protect(specification, master=arguments.master, progress=progress())


def _adjust(arguments: argparse.Namespace, progress: Callable[[], Progress]) -> Outcome:
    specification = _specification(arguments)
    from pipelines.adjust import adjust

    return adjust(specification, master=arguments.master, progress=progress())


def _check(arguments: argparse.Namespace, progress: Callable[[], Progress]) -> Outcome:
    specification = _specification(arguments)
    from pipelines.check import check

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

    return benchmark(
        arguments.name, quick=arguments.quick, show=lambda table: print(f"{table}\n", flush=True)
    )


def _clean(arguments: argparse.Namespace, progress: Callable[[], Progress]) -> Outcome:
    from pipelines.clean import clean

    return clean(arguments.areas)


def _report(arguments: argparse.Namespace, progress: Callable[[], Progress]) -> Outcome:
    from pipelines.report import report

    return report(arguments.release)


def _verify(arguments: argparse.Namespace, progress: Callable[[], Progress]) -> Outcome:
    from pipelines.verify import verify

    return verify(arguments.release)


def _withdraw(arguments: argparse.Namespace, progress: Callable[[], Progress]) -> Outcome:
    from pipelines.withdraw import withdraw

    return withdraw(arguments.release)


VERBS: dict[str, Callable[[argparse.Namespace, Callable[[], Progress]], Outcome]] = {
    "protect": _protect,
    "adjust": _adjust,
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
