"""Errors of the methods: what was found, what was expected, what to do.

No message may contain a value of a record: name variables, counts and positions, never contents.
"""

from __future__ import annotations


class SdcError(ValueError):
    """Base of every error a method raises on purpose; carries its culprits.

    Attributes
    ----------
    variable : str or int or None
        The variable (name or position) at fault, where there is one.
    block_id : int or str or None
        The block in which it happened; set by whoever knows the block.
    """

    def __init__(
        self, message: str, *, variable: str | int | None = None, block_id: int | str | None = None
    ) -> None:
        super().__init__(message)
        self.variable = variable
        self.block_id = block_id


class TooFewRecords(SdcError):
    """Fewer records than k, or none at all."""


class InvalidParameter(SdcError):
    """A parameter outside its range: k below 2, an unknown algorithm, effort or criterion."""


class UnsupportedCombination(InvalidParameter):
    """Options that are valid alone but that the chosen method cannot carry together."""


class NotNumeric(SdcError):
    """A variable that must be numeric is not."""


class NotFinite(SdcError):
    """A variable contains NaN or infinity."""


class NoVariation(SdcError):
    """Every variable is constant: there is nothing to standardise or to lose."""


class ShapeMismatch(SdcError):
    """Arrays whose lengths or dimensions do not fit together."""


class UnsupportedArguments(SdcError):
    """Arrays of types that a compiled loop does not take, or a read-only array that it writes to."""


class UnknownVariable(SdcError):
    """A name that the frame does not have, or has twice."""


class NotAdditive(SdcError):
    """A table whose relations do not hold within tolerance."""


class ImpossibleProtection(SdcError):
    """A protection that the capacities or relations exclude, with the lines that prove it."""


class SolverFailed(SdcError):
    """The solver ended in a state from which nothing can be concluded."""
