"""Represent the result of a benchmark as a table with known figures for comparison, in Markdown."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, field
from datetime import date

from microguard.pipelines.engine.versions import microguard_version


def measured_by(name: str, quick: bool = False) -> str:
    """Return command, machine, version and date of a benchmark, the line above each table of the manual."""
    command = f"microguard benchmark {name}{' --quick' if quick else ''}"
    machine = f"{os.cpu_count()} cores, {platform.machine()}, shared"
    when = f"*Version:* {microguard_version()}. *Date:* {date.today()}."
    return f"*Command:* `{command}`. *Machine:* {machine}. {when}"


@dataclass(frozen=True)
class Table:
    """A table of results.

    Attributes
    ----------
    title : str
        Description of the measurement and the data.
    columns : tuple of str
        Headings with units.
    rows : list of tuples
        One row per instance or method, as long as `columns`.
    note : str
        Machine-independent remarks, for example the source of a figure, or the reason why one is missing.
    """

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[object, ...]] = field(default_factory=list)
    note: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{self.title}: a row has {len(row)} entries, expected {len(self.columns)}")

    def markdown(self) -> str:
        """Format the table as GitHub Markdown."""
        lines = [f"**{self.title}**", "", line(self.columns)]
        lines.append("|" + " --- |" * len(self.columns))
        lines += [line(row) for row in self.rows]
        if self.note:
            lines += ["", self.note]
        return "\n".join(lines)


def line(row: tuple[object, ...]) -> str:
    """Format a row as GitHub Markdown."""
    return "| " + " | ".join(_text(value) for value in row) + " |"


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return str(value)
