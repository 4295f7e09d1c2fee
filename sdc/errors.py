"""Exceptions of the methods. A message states the key, what was expected, what was found and what to do.

A message names variables, counts and positions. A message never contains a value of a record.
"""

from __future__ import annotations


class SdcError(ValueError):
    """Base class of the errors that methods raise on purpose.

    Attributes
    ----------
    variable : str or int or None
        Name or position of the variable that caused the error; None if the error concerns no single variable.
    block_id : int or str or None
        Block that raised the error. The caller that runs the block sets it.
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
    """Options that are each valid, but that the chosen method does not support in combination."""


class NotNumeric(SdcError):
    """A variable that must be numeric is not."""


class NotFinite(SdcError):
    """A variable contains NaN or infinity."""


class NoVariation(SdcError):
    """Every variable is constant: variables cannot be standardised and information loss is undefined."""


class ShapeMismatch(SdcError):
    """Arrays whose lengths or dimensions do not fit together."""


class UnsupportedArguments(SdcError):
    """Array types that a kernel does not compile for, or a read-only array that it would write to."""


class UnknownVariable(SdcError):
    """A variable name that is missing from the frame, or that occurs twice in it."""


class NotAdditive(SdcError):
    """A table whose additive relations do not hold within the tolerance."""


class ImpossibleProtection(SdcError):
    """A protection requirement that the data, the capacities or the relations make infeasible."""


class SolverFailed(SdcError):
    """The solver ended with a status that proves neither a solution nor infeasibility."""
