"""Information loss and disclosure risk of one variant, measured on a sample, and its format as a row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


MOST_NAMED = 3
"""Maximum number of variables with the same exceeded limit that are named."""


def _listed(broken: Iterable[str] | None) -> str:
    """Return the exceeded limits; of a limit that many variables exceed, their number."""
    if broken is None:
        return "-"
    by_metric: dict[str, list[str]] = {}
    for each in broken:
        by_metric.setdefault(each.partition(" of ")[0], []).append(each)
    return (
        ", ".join(
            name
            for metric, alike in by_metric.items()
            for name in (alike if len(alike) <= MOST_NAMED else [f"{metric} of {len(alike)} variables"])
        )
        or "none"
    )


def explain_comparison(rows: Sequence[ComparisonRow]) -> list[str]:
    """Return the meaning of the columns that the rows have, and what follows for the choice of k."""
    meanings = {
        "information_loss": "information loss: share of the variation of the numbers that is lost",
        "categories_changed": "categories changed: share of the categories with another value",
        "chi2_per_cell": "chi2 per cell: mean (new - old)² / old of the counts of categories",
        "unique_jointly": "unique jointly: records that are unique with all published columns",
        "homogeneous": "homogeneous: records in classes with one value of a sensitive variable",
    }
    shown = [words for name, words in meanings.items() if any(getattr(row, name) is not None for row in rows)]
    return [*(f"  {words}" for words in shown), *_conclusion(rows)]


def _conclusion(rows: Sequence[ComparisonRow]) -> list[str]:
    if any(row.broken is None for row in rows):
        return []
    several = len({row.choice for row in rows}) > 1
    by_choice: dict[str, list[str]] = {}
    for row in rows:
        if not row.broken:
            by_choice.setdefault(row.choice or AS_SPECIFIED, []).append(str(row.k))
    if by_choice:
        meeting = (
            f"k = {', '.join(sizes)}" + (f" ({choice})" if several else "")
            for choice, sizes in by_choice.items()
        )
        advice = " Of these, take the largest k whose loss your users can accept."
        several_rows = sum(map(len, by_choice.values())) > 1
        return [f"No limit is exceeded with {'; '.join(meeting)}.{advice if several_rows else ''}"]
    always = [each for each in rows[0].broken or () if all(each in (row.broken or ()) for row in rows)]
    words = f"No compared row meets: {_listed(always)}." if always else "Every row exceeds some limit."
    return [f"{words} `microguard check` prints what to do."]


def percent(value: float | None) -> str:
    """Format a share in percent with three significant digits."""
    return "-" if value is None else f"{100 * value:.3g} %"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
