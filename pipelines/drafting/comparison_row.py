"""One k of one choice, on a sample: what it costs and what it leaves open, as a line of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

AS_SPECIFIED = "as specified"
"""The choice of the specification itself."""


@dataclass(frozen=True)
class ComparisonRow:
    """Shares of the sample, None where one does not apply.

    Attributes
    ----------
    k : int
    information_loss : float or None
        SSE/SST over the numeric quasi-identifiers.
    categories_changed : float or None
        Values of the nominal ones that are others now.
    chi2_per_cell : float or None
        Over the control tables.
    unique_jointly : float or None
        Records unique on the quasi-identifiers and all columns published as they are.
    homogeneous : float or None
        Records in classes with one value of a sensitive variable, of the variable with most of them.
    choice : str
        What is chosen otherwise than in the specification; empty where nothing is.
    broken : tuple of str or None
        Limits that do not hold, those that are accepted by name among them.
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
    """Lines of a table, one for each choice and k below its head; what applies to none is left out."""
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
    """A share in percent, to three digits."""
    return "-" if value is None else f"{100 * value:.3g} %"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
