"""Write the page of the manual on cell suppression: each table row is written once it is measured."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from microguard.pipelines.engine.versions import deciding_versions, in_words, microguard_version

from tests.benchmarks.parts import Parts
from tests.benchmarks.table import Table

PAGE = Path(__file__).parents[3] / "docs/benchmarks/suppression.md"
_LEAD = (
    "Every pattern of microguard passes the audit. Times are CPU seconds of one process, the audit included; "
    "gap = cost / lower bound - 1. Contributors who know a primary exactly, because they are its only ones, "
    "do not count."
)


@dataclass(frozen=True)
class Plan:
    """A table whose rows are measured one after the other, each by its name."""

    title: str
    columns: tuple[str, ...]
    rows: dict[str, Callable[[], tuple[object, ...]]]
    note: str = ""

    def table(self, measured: Mapping[str, tuple[object, ...]]) -> Table:
        """Return the rows measured so far, and name the missing rows."""
        left = [name for name in self.rows if name not in measured]
        notes = [self.note, f"Not measured to the end: {'; '.join(left)}." if left else ""]
        rows = [measured[name] for name in self.rows if name in measured]
        return Table(self.title, self.columns, rows, " ".join(filter(None, notes)))


def measure_rows(
    plans: Sequence[Plan], parts: Parts, command: str, long: Sequence[str] = (), *, write: bool
) -> Iterator[Table]:
    """Return the tables of some plans.

    Parameters
    ----------
    parts : Parts
        Rows that the same code measured before are not measured again.
    command : name of the benchmark
    long : names of rows that are measured last, in this order
    write : whether to write each row into the page
    """
    measured: dict[str, dict[str, tuple[object, ...]]] = {plan.title: {} for plan in plans}
    rows = [(plan, name, make) for plan in plans for name, make in plan.rows.items()]
    last = {name: number for number, name in enumerate(long, start=1)}
    for plan, name, make in sorted(rows, key=lambda row: last.get(row[1], 0)):
        row, _ = parts.answer(name, make)
        measured[plan.title][name] = row
        if write:
            table = plan.table(measured[plan.title])
            PAGE.write_text(page([table], PAGE.read_text(encoding="utf-8"), command), encoding="utf-8")
    yield from (plan.table(measured[plan.title]) for plan in plans)


def page(tables: list[Table], before: str = "", command: str = "suppression") -> str:
    """Return the page of the manual; tables of the previous page that were not measured again are kept."""
    where = (
        f"*Command:* `microguard benchmark {command}`. *Machine:* {os.cpu_count()} cores, "
        f"{platform.machine()}, shared, one thread used. *Version:* {microguard_version()}, "
        f"{in_words(deciding_versions())}. *Date:* {datetime.now(UTC).date()}."
    )
    sections = {part.split("\n", 1)[0]: part.rstrip("\n") for part in before.split("\n## ")[1:]}
    for table in tables:
        sections[table.title] = (
            f"{table.title}\n{where}\n\n{table.markdown().split(chr(10) * 2, 1)[1].strip()}"
        )
    return "\n\n".join(["# Cell suppression", _LEAD, *(f"## {part}" for part in sections.values())]) + "\n"
