"""Problem of cell suppression: a table, its primary cells with their levels, and the knowledge of
attackers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from microguard.sdc.errors import (
    ImpossibleProtection,
    InvalidParameter,
    NotAdditive,
    NotFinite,
    ShapeMismatch,
)
from scipy import sparse

#: Kinds of attackers: someone who contributes to no cell (outsider), the only contributor of a cell, the only
#: two contributors of a cell together, and any contributor. Each contributor knows his own amounts in all
#: cells.
KINDS = ("outsider", "single", "pair", "unit")
#: Tolerance of additivity, relative to the sum of absolute values of a constraint.
ADDITIVITY_TOLERANCE = 1e-6
#: Share of a level that may be missing because of rounding errors in sums and linear programs.
LEVEL_TOLERANCE = 1e-6
#: Maximum relative gap of a pattern that counts as optimal: the rounding error of sums of costs.
PROVED = 1e-7


@dataclass(frozen=True, eq=False)
class Contributions:
    """Amounts that units contribute to cells, including margins.

    A cell's contributors must be complete: a cell with a single unit counts as known to this unit.
    Enterprises of one holding share one unit number; their amounts are added.

    Attributes
    ----------
    cell, unit : (contributions,) int arrays
    amount : (contributions,) float array
    """

    cell: np.ndarray
    unit: np.ndarray
    amount: np.ndarray

    def __post_init__(self) -> None:
        for name, kind in (("cell", np.int64), ("unit", np.int64), ("amount", np.float64)):
            object.__setattr__(self, name, _frozen(np.asarray(getattr(self, name), dtype=kind)))
        if not len(self.cell) == len(self.unit) == len(self.amount):
            raise ShapeMismatch("contributions: expected arrays of one length")
        if not np.isfinite(self.amount).all():
            raise NotFinite("contributions: amounts must be finite", variable="amount")


@dataclass(frozen=True, eq=False)
class SuppressionProblem:
    """A table with primary cells.

    Every attacker's interval of a primary must contain the protection levels of the primary.

    Attributes
    ----------
    values : (cells,) float array, margins included, of any sign
    relations : sparse (constraints, cells) of -1, 0, 1 with ``relations @ values = 0``
    primary : (cells,) boolean array
        Cells that are sensitive by the disclosure rule; they are always suppressed.
    lower_level, upper_level : (cells,) float arrays
        Protection levels: the minimum distances of the ends of the interval below and above the value. 0 for
        other cells.
    sliding_level : (cells,) float array, optional
        Minimum width of the interval, whatever its position.
    lower_bound, upper_bound : (cells,) float arrays, optional
        Bounds on each cell that every attacker knows before publication; default: 0 and twice the value (for
        negative values, twice the value and 0).
    costs : (cells,) float array, optional
        Cost of suppressing each cell, 0 or more; default 1.
    keep, force : (cells,) boolean arrays, optional
        Cells that must be published, and cells that must be suppressed although they are not primary.
    contributions : Contributions, optional
        Needed for attackers who contribute to the table.
    unit : float
        Unit of publication. An interval narrower than this unit protects nothing.

    Raises
    ------
    ShapeMismatch, NotFinite, NotAdditive
        If arrays do not fit together, contain NaN or infinity, or if relations do not hold.
    InvalidParameter
        If levels or costs are negative; if a primary has no level, or levels narrower than the unit of
        publication; if a primary or forced cell must be published.
    ImpossibleProtection
        If the levels of a primary exceed the bounds that every attacker knows before publication, as for a
        cell of value 0 with default bounds.

    References
    ----------
    Fischetti, Salazar-Gonzalez 2001, Solving the cell suppression problem on tabular data with linear
    constraints, Management Science 47(7), section 2.
    """

    values: np.ndarray
    relations: sparse.csr_matrix
    primary: np.ndarray
    lower_level: np.ndarray
    upper_level: np.ndarray
    sliding_level: np.ndarray = None  # type: ignore[assignment]  # set by the constructor
    lower_bound: np.ndarray = None  # type: ignore[assignment]
    upper_bound: np.ndarray = None  # type: ignore[assignment]
    costs: np.ndarray = None  # type: ignore[assignment]
    keep: np.ndarray = None  # type: ignore[assignment]
    force: np.ndarray = None  # type: ignore[assignment]
    contributions: Contributions | None = None
    unit: float = 0.0

    def __post_init__(self) -> None:
        values = np.asarray(self.values, dtype=float)
        if values.ndim != 1 or len(values) == 0:
            raise ShapeMismatch("values: expected a one-dimensional array of at least 1 cell")
        defaults = {
            "sliding_level": np.zeros(len(values)),
            "lower_bound": np.minimum(2 * values, 0.0),
            "upper_bound": np.maximum(2 * values, 0.0),
            "costs": np.ones(len(values)),
            "keep": np.zeros(len(values), dtype=bool),
            "force": np.zeros(len(values), dtype=bool),
        }
        for name in ("values", "primary", "lower_level", "upper_level", *defaults):
            given = getattr(self, name)
            array = np.array(defaults[name] if given is None else given)
            if name in ("primary", "keep", "force"):
                if array.dtype != bool:
                    raise InvalidParameter(f"{name}: expected booleans, found {array.dtype}", variable=name)
            else:
                array = array.astype(float)
                if not np.isfinite(array).all():
                    raise NotFinite(f"{name}: expected finite numbers", variable=name)
            if array.shape != values.shape:
                raise ShapeMismatch(f"{name}: expected shape {values.shape}, found {array.shape}")
            object.__setattr__(self, name, _frozen(array))
        for name in ("lower_level", "upper_level", "sliding_level", "costs"):
            if np.any(getattr(self, name) < 0):
                raise InvalidParameter(f"{name}: expected 0 or more", variable=name)
        object.__setattr__(self, "relations", _relations(self.relations, values))
        self._check_primaries()

    @property
    def cells(self) -> int:
        """Return the number of cells, margins included."""
        return len(self.values)

    @property
    def must(self) -> np.ndarray:
        """Return for each cell whether every pattern suppresses it, (cells,)."""
        return self.primary | self.force

    def _check_primaries(self) -> None:
        known = (self.lower_bound > self.values) | (self.upper_bound < self.values)
        self._refuse(
            known, InvalidParameter, "has bounds that exclude its value; give bounds that contain it"
        )
        width = np.maximum(self.lower_level + self.upper_level, self.sliding_level)
        primary = self.primary
        self._refuse(
            primary & (width <= 0),
            InvalidParameter,
            "is primary with levels of 0, which protect nothing (a share of a value of 0 is 0); give it a "
            "level, or do not declare it primary",
        )
        self._refuse(
            primary & (width < self.unit),
            InvalidParameter,
            "is primary, but its levels are narrower than the unit of publication; raise the levels, or "
            "publish in a finer unit",
        )
        self._refuse(
            self.keep & self.must, InvalidParameter, "must be both published and suppressed; drop one"
        )
        enough = 1 - LEVEL_TOLERANCE
        outside = (self.values - self.lower_bound < enough * self.lower_level) | (
            self.upper_bound - self.values < enough * self.upper_level
        )
        narrow = self.upper_bound - self.lower_bound < enough * self.sliding_level
        self._refuse(
            primary & (outside | narrow),
            ImpossibleProtection,
            "is primary, but its levels exceed the bounds that all attackers know; widen the bounds or "
            "lower the levels",
        )

    @staticmethod
    def _refuse(culprits: np.ndarray, error: type[InvalidParameter | ImpossibleProtection], why: str) -> None:
        if culprits.any():
            cell = int(np.argmax(culprits))
            raise error(f"cell {cell} {why} ({int(culprits.sum())} such cells)", variable=cell)


def check_attackers(problem: SuppressionProblem, attackers: Sequence[str]) -> tuple[str, ...]:
    """Return the kinds of attackers, the outsider first; only the outsider if the problem has no
    contributions.

    Raises
    ------
    InvalidParameter
        If a kind is unknown.
    """
    for kind in attackers:
        if kind not in KINDS:
            raise InvalidParameter(f"attackers: expected kinds among {', '.join(KINDS)}, found {kind!r}")
    if problem.contributions is None:
        return ("outsider",)
    return tuple(kind for kind in KINDS if kind == "outsider" or kind in attackers)


def _relations(relations: sparse.spmatrix, values: np.ndarray) -> sparse.csr_matrix:
    matrix = sparse.csr_matrix(relations, dtype=float)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if matrix.shape[1] != len(values):
        raise ShapeMismatch(f"relations: expected {len(values)} columns, found {matrix.shape[1]}")
    if not np.isin(matrix.data, (-1.0, 1.0)).all():
        raise InvalidParameter("relations: expected entries of -1, 0 and 1")
    wrong = np.abs(matrix @ values) > ADDITIVITY_TOLERANCE * (abs(matrix) @ np.abs(values))
    if wrong.any():
        line = int(np.argmax(wrong))
        raise NotAdditive(
            f"relation {line}: expected a total equal to the sum of its parts, found a "
            f"difference ({int(wrong.sum())} such relations)",
            variable=line,
        )
    return matrix


def _frozen(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array
