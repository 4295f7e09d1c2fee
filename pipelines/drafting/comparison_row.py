"""Information loss and disclosure risk of one variant, measured on a sample, and its format as a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

AS_SPECIFIED = "as specified"
"""Label of the variant without changes of the specification."""


@dataclass(frozen=True)
class ComparisonRow:
    """Information loss and risk of the sample for one k and one variant; None for a measure that does not
    apply.

    Attributes
    ----------
    k : int
    information_loss : float or None
        SSE/SST over the numeric quasi-identifiers.
    categories_changed : float or None
        Share of the values of nominal quasi-identifiers that protection changes.
    chi2_per_cell : float or None
        Mean chi-square over the cells of the control tables.
    unique_jointly : float or None
        Share of records that are unique on the quasi-identifiers and all unmodified columns.
    homogeneous : float or None
        Share of records in classes with one value of a sensitive variable: the maximum over these variables.
    choice : str
        Overridden keys of the specification; empty if there are none.
    broken : tuple of str or None
        Limits that are exceeded, including limits that the specification accepts by name.
    """

    k: int
    information_loss: float | None
    categories_changed: float | None
    chi2_per_cell: float | None
    unique_jointly: float | None
    homogeneous: float | None
    choice: str = ""
    broken: tuple[str, ...] | None = None


def format_comparison(rows: Sequence[ComparisonRow]) -> list[str]:
    """Format the rows as lines of a table with a header; omit columns that apply to no row."""
    choices = len({row.choice for row in rows}) > 1
    columns = [
        [name, *values]
        for name, values in (
            ("choice", [row.choice or AS_SPECIFIED if choices else "-" for row in rows]),
            ("k", [str(row.k) for row in rows]),
            ("information loss", [percent(row.information_loss) for row in rows]),
            ("categories changed", [percent(row.categories_changed) for row in rows]),
            ("chi2 per cell", [_number(row.chi2_per_cell) for row in rows]),
            ("unique jointly", [percent(row.unique_jointly) for row in rows]),
            ("homogeneous", [percent(row.homogeneous) for row in rows]),
            ("limits broken", [_listed(row.broken) for row in rows]),
        )
        if set(values) != {"-"}
    ]
    widths = [max(map(len, column)) for column in columns]
    return [
        "  ".join(word.rjust(width) for word, width in zip(line, widths, strict=True))
        for line in zip(*columns, strict=True)
    ]


def _listed(broken: tuple[str, ...] | None) -> str:
    return "-" if broken is None else ", ".join(broken) or "none"


def percent(value: float | None) -> str:
    """Format a share in percent with three significant digits."""
    return "-" if value is None else f"{100 * value:.3g} %"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
