"""Releases of an evidence area as the joint audit reads them, without the code that made the releases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

#: Name of the measure of a table of counts.
COUNT = "(count)"


#: Errors raised by reading if published numbers or evidence of a release are lost or damaged.
LOST = (OSError, ValueError, LookupError, TypeError, pa.ArrowException)


@dataclass(frozen=True)
class TableLayout:
    """Layout of a table file, and the bounds on the true values of its cells that a reader knows.

    Attributes
    ----------
    measure : str
        Variable that is summed, `COUNT` for frequencies.
    method : str
        Name of the method in the specification: "adjustment", "rounding", "cell_key", "suppression", ...
    total : str
        Code of a total.
    hierarchies : tuple of tuples of str
        Columns that nest, coarse to fine.
    parents : mapping of column to (mapping of code to parent code)
        Codes that are part of another code of the same column.
    least : int
        Minimum frequency.
    base, noise : int or None
        Base of rounding, and largest noise of a cell.
    capacity : float
        Largest relative change of a cell that is not sensitive.
    """

    measure: str
    method: str = "adjustment"
    total: str = "Total"
    hierarchies: tuple[tuple[str, ...], ...] = ()
    parents: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    least: int = 3
    base: int | None = None
    noise: int | None = None
    capacity: float = 1.0

    @property
    def counts(self) -> bool:
        """Return whether the cells are frequencies."""
        return self.measure.startswith(COUNT)


@dataclass(frozen=True)
class Release:
    """A release that is public, was public, or is about to be published.

    Attributes
    ----------
    release_id : str
    group : str
        Population: only releases of one group can share records.
    period : str
    evidence : Path
        Private folder of the release.
    public : Path or None
        Folder of the published or staged files; None if they were withdrawn.
    manifest : mapping or None
        Manifest of the release; None if the release was withdrawn.
    table : TableLayout or None
        Layout of the table; None for a release of records.
    series : bool
        Whether it is an update of a series, whose evidence must have a map of members.
    """

    release_id: str
    group: str
    period: str
    evidence: Path
    public: Path | None = None
    manifest: Mapping[str, Any] | None = None
    table: TableLayout | None = None
    series: bool = False
