"""The methods a specification may name, and what each may be combined with.

The names are those of the papers; `tests/schemas` holds them against `sdc`, which this package leaves alone.
"""

from __future__ import annotations

from typing import Literal

MethodName = Literal["microaggregation", "safe"]
Effort = Literal["fast", "standard", "thorough", "exact"]
Representative = Literal["auto", "mean", "median", "medoid", "control_tables", "mode"]
Unit = Literal["record", "household"]
Kinds = Literal["nominal", "numeric", "mixed"]
"""Kinds of the quasi-identifiers that are clustered together."""

NUMERIC_ALGORITHMS: tuple[str, ...] = (
    "mdav",
    "vmdav",
    "maximum-distance",
    "projection-pv",
    "projection-sz",
    "projection-fpc",
    "k-ward",
    "column-generation",
    "local-search",
)
NOMINAL_ALGORITHMS: tuple[str, ...] = (
    "own-eee",
    "own-eeg",
    "own-eec",
    "own-hee",
    "own-hhe",
    "own-hhg",
    "own-hhc",
    "random",
    "chi-exact",
    "local-search",
)
SAFE_ALGORITHMS: tuple[str, ...] = ("safe", "safe-exact", "modified-safe-exact")

REPRESENTATIVES: dict[Kinds, tuple[str, ...]] = {
    "numeric": ("auto", "mean", "median", "medoid"),
    "nominal": ("auto", "control_tables", "mode", "medoid"),
    "mixed": ("auto", "mean", "median", "medoid", "mode"),
}

MAX_RECORDS_BY_EFFORT: dict[str, int] = {
    "fast": 100_000,
    "standard": 100_000,
    "thorough": 5_000,
    "exact": 200,
}
"""Records of a block where blocking.max_records is "auto"."""

MAX_RECORDS_BY_ALGORITHM: dict[str, int] = {
    **dict.fromkeys(("column-generation", "safe-exact", "modified-safe-exact"), 200),
    **dict.fromkeys((name for name in NOMINAL_ALGORITHMS if name != "local-search"), 200),
    **dict.fromkeys(("mdav", "vmdav", "maximum-distance", "k-ward"), 10_000),
}
"""The same for algorithms that solve programs in each block, or whose work grows with its square."""


def algorithms(method: MethodName, kinds: Kinds) -> tuple[str, ...]:
    """Names `method.algorithm` may take for quasi-identifiers of these kinds, "auto" first."""
    if method == "safe":
        return ("auto", *SAFE_ALGORITHMS)
    if kinds == "nominal":
        return ("auto", *NOMINAL_ALGORITHMS)
    return ("auto", *NUMERIC_ALGORITHMS)
