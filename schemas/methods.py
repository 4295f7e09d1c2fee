"""The methods a specification may name, and what each can carry: one row an algorithm.

The names are those of the papers. A specification that asks an algorithm for what it cannot carry is refused
when it is read. `tests/schemas` holds names, efforts and kinds equal to those of `sdc`, which this package
leaves alone: whoever adds an algorithm there adds its row here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

MethodName = Literal["microaggregation", "safe"]
Effort = Literal["fast", "standard", "thorough", "exact"]
Representative = Literal["auto", "mean", "median", "medoid", "control_tables", "mode"]
Unit = Literal["record", "household", "unit"]
Kinds = Literal["nominal", "numeric", "mixed"]
"""Kinds of the quasi-identifiers that are clustered together."""
Way = Literal["clusters", "combinations", "safe"]
"""How a clustering is protected: its records in clusters, or the counts of its combinations, by a search or a
program or by SAFE."""

EFFORTS: tuple[Effort, ...] = get_args(Effort)
CONSTRUCTION: tuple[Effort, ...] = ("fast", "standard")
UNPROVED: tuple[Effort, ...] = ("fast", "standard", "thorough")


@dataclass(frozen=True)
class Algorithm:
    """What an algorithm can carry.

    Attributes
    ----------
    efforts : tuple of str
        Efforts it can be asked for. On combinations the work of most does not depend on it; "exact" is for
        those only that prove, or state the gap of the whole.
    nominal : bool
        Whether it can carry nominal variables.
    one_variable : bool
        Whether it takes a single variable only.
    record_weights : bool
        Whether it heeds unequal weights of the records.
    max_records : int or None
        Records of a block where blocking.max_records is "auto"; None: as many as the effort allows. Few where
        it solves programs in each block, or its work grows with their square.
    """

    efforts: tuple[Effort, ...] = EFFORTS
    nominal: bool = True
    one_variable: bool = False
    record_weights: bool = True
    max_records: int | None = None


_PROGRAMS = 200
_SQUARE = 10_000

CLUSTERING: dict[str, Algorithm] = {
    "mdav": Algorithm(CONSTRUCTION, max_records=_SQUARE),
    "vmdav": Algorithm(CONSTRUCTION, max_records=_SQUARE),
    "univariate-optimal": Algorithm(nominal=False, one_variable=True, record_weights=False),
    "genetic": Algorithm(CONSTRUCTION, nominal=False, one_variable=True, record_weights=False),
    "mdav-in-blocks": Algorithm(CONSTRUCTION),
    "local-search": Algorithm(("standard", "thorough")),
    "maximum-distance": Algorithm(CONSTRUCTION, max_records=_SQUARE),
    "projection-pv": Algorithm(CONSTRUCTION, nominal=False),
    "projection-sz": Algorithm(CONSTRUCTION, nominal=False),
    "projection-fpc": Algorithm(CONSTRUCTION),
    "k-ward": Algorithm(CONSTRUCTION, max_records=_SQUARE),
    "k-ward-projected": Algorithm(CONSTRUCTION),
    "column-generation": Algorithm(
        ("standard", "thorough", "exact"), record_weights=False, max_records=_PROGRAMS
    ),
}
"""Of records in clusters (`sdc.microaggregation`)."""

TWO_STEP = tuple(f"own-{f}{i}{a}" for f in "eh" for i in "eh" for a in "egc")

COMBINATIONS: dict[str, Algorithm] = {
    **dict.fromkeys(TWO_STEP, Algorithm(max_records=_PROGRAMS)),
    "random": Algorithm(UNPROVED, max_records=_PROGRAMS),
    "chi-exact": Algorithm(max_records=_PROGRAMS),
    "local-search": Algorithm(),
}
"""Of the counts of combinations (`sdc.nominal`)."""

SAFE: dict[str, Algorithm] = {
    "safe": Algorithm(UNPROVED),
    "safe-exact": Algorithm(max_records=_PROGRAMS),
    "modified-safe-exact": Algorithm(max_records=_PROGRAMS),
}
"""Of `sdc.safe`."""

ALGORITHMS: Mapping[Way, Mapping[str, Algorithm]] = {
    "clusters": CLUSTERING,
    "combinations": COMBINATIONS,
    "safe": SAFE,
}

REPRESENTATIVES: dict[Kinds, tuple[str, ...]] = {
    "numeric": ("auto", "mean", "median", "medoid"),
    "nominal": ("auto", "control_tables", "mode", "medoid"),
    "mixed": ("auto", "mean", "median", "medoid", "mode"),
}
"""What may be published for a cluster."""
ON_COMBINATIONS: tuple[str, ...] = ("auto", "control_tables")
"""Representatives of nominal variables that are chosen by the errors of control tables, without clusters."""

MAX_RECORDS_BY_EFFORT: dict[Effort, int] = {
    "fast": 100_000,
    "standard": 100_000,
    "thorough": 5_000,
    "exact": 200,
}
"""Records of a block where blocking.max_records is "auto"."""


def algorithms(way: Way, kinds: Kinds, variables: int, weighted: bool = False) -> tuple[str, ...]:
    """Names `method.algorithm` may take for so many quasi-identifiers of these kinds, "auto" first.

    Those only that heed the weights of the records, where these are `weighted`.
    """
    able = (
        name
        for name, row in ALGORITHMS[way].items()
        if (row.nominal or kinds == "numeric")
        and (variables == 1 or not row.one_variable)
        and (row.record_weights or not weighted)
    )
    return ("auto", *able)


def all_algorithms(method: MethodName) -> tuple[str, ...]:
    """Every name of a method, whatever it can carry."""
    ways: tuple[Way, ...] = ("safe",) if method == "safe" else ("clusters", "combinations")
    return ("auto", *dict.fromkeys(name for way in ways for name in ALGORITHMS[way]))


def efforts(way: Way, algorithm: str, weighted: bool = False) -> tuple[Effort, ...]:
    """Efforts an algorithm can be asked for; "auto" picks one that carries the effort, and the weights."""
    if algorithm != "auto":
        return ALGORITHMS[way][algorithm].efforts
    return UNPROVED if weighted else EFFORTS


def max_records(way: Way, algorithm: str, effort: Effort) -> int:
    """Most records of a block where blocking.max_records is "auto"."""
    most = MAX_RECORDS_BY_EFFORT[effort]
    row = ALGORITHMS[way].get(algorithm)
    return most if row is None or row.max_records is None else min(most, row.max_records)
