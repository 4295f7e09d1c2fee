"""The parameters of SAFE, with the values of the German census (Cost 2023, Appendix A)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from numbers import Real

import numpy as np
from microguard.sdc.errors import InvalidParameter

#: Appendix A: cells below 10 get no extra error, below 20 one, ..., of 1,000,000 and more nine.
_EXTRA_ERROR_FROM = (10, 20, 50, 100, 200, 1_000, 10_000, 100_000, 1_000_000)
_LARGEST_SLICE = 4


def _whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


@dataclass(frozen=True)
class SafeParams:
    """What steers SAFE; the defaults are Appendix A's unless said otherwise.

    Attributes
    ----------
    allowed_bound_one_dimension, allowed_bound_higher_dimension : int
        Bounds b on the absolute error with which Algorithm 1 starts.
    max_gap_between_bounds : int
        Largest difference between the two bounds when they are raised.
    allowed_deviation : int
        Largest change of a combination's frequency at k = 3. Other k take k - 3 more, as a
        combination must be able to reach both 0 and k.
    first_part, part : int
        Combinations in the first part of the vector, and in each part added to it.
    slice : int
        Combinations that Algorithms 2 and 4 change together (2 to 4).
    stagnation : float
        Share of the confidentiality problems below which a pass has eliminated too few.
    target_bound_one_dimension, target_bound_higher_dimension : int
        Bounds b* that the improvement (Algorithm 3) aims at.
    max_improvements : int
        Passes of the improvement.
    extra_error_from : tuple of int
        Increasing original counts; a cell's extra error g is how many of them it reaches.
    max_exceedings, max_total_exceedings : int
        Algorithm 3: cells that a lowered bound may leave above it before the bounds stop falling,
        and before the improvement ends. Appendix A does not give them; ours end full Adult with small
        maxima (10 exceedings end it with slightly smaller ones).
    max_nodes : int or None
        Branch-and-bound nodes of safe-exact and modified-safe-exact; None for no limit.
    """

    allowed_bound_one_dimension: int = 2
    allowed_bound_higher_dimension: int = 3
    max_gap_between_bounds: int = 3
    allowed_deviation: int = 3
    first_part: int = 5000
    part: int = 500
    slice: int = 3
    stagnation: float = 0.02
    target_bound_one_dimension: int = 2
    target_bound_higher_dimension: int = 3
    max_improvements: int = 20
    extra_error_from: tuple[int, ...] = _EXTRA_ERROR_FROM
    max_exceedings: int = 50
    max_total_exceedings: int = 5000
    max_nodes: int | None = None

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self) if field.type == "int"):
            if not _whole(getattr(self, name)):
                raise InvalidParameter(f"{name} must be a whole number, found {getattr(self, name)!r}")
        for name in (
            "allowed_bound_one_dimension",
            "allowed_bound_higher_dimension",
            "max_gap_between_bounds",
            "target_bound_one_dimension",
            "target_bound_higher_dimension",
            "max_improvements",
            "max_exceedings",
            "max_total_exceedings",
        ):
            if getattr(self, name) < 0:
                raise InvalidParameter(f"{name} may not be negative, found {getattr(self, name)}")
        for name in ("first_part", "part"):
            if getattr(self, name) < 1:
                raise InvalidParameter(f"{name} must be at least 1, found {getattr(self, name)}")
        if self.allowed_deviation < 2:
            raise InvalidParameter(
                f"allowed_deviation must be at least 2 (k - 1 at k = 3), found {self.allowed_deviation}: "
                "with less a combination may reach neither 0 nor k"
            )
        if not 2 <= self.slice <= _LARGEST_SLICE:
            raise InvalidParameter(f"slice must be 2 to {_LARGEST_SLICE}, found {self.slice}")
        if not isinstance(self.stagnation, Real) or not 0 <= self.stagnation < 1:
            raise InvalidParameter(f"stagnation must be a share from 0 to below 1, found {self.stagnation!r}")
        counts = self.extra_error_from
        listed = isinstance(counts, tuple | list) and all(map(_whole, counts))
        if not listed or list(counts) != sorted(set(counts)):
            raise InvalidParameter("extra_error_from must be a tuple of whole numbers that increase")
        if self.max_nodes is not None and (not _whole(self.max_nodes) or self.max_nodes < 1):
            raise InvalidParameter(
                f"max_nodes must be a whole number from 1, or None, found {self.max_nodes!r}"
            )

    def extra_error(self, original: np.ndarray) -> np.ndarray:
        """Extra error g_t of cells with these original counts."""
        return np.searchsorted(np.array(self.extra_error_from, np.int64), original, side="right")

    def target_bounds(self, dimension: np.ndarray) -> np.ndarray:
        """Target bounds b*_t of cells of these dimensions."""
        return np.where(
            dimension == 1, self.target_bound_one_dimension, self.target_bound_higher_dimension
        ).astype(np.int64)
