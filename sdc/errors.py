"""Exceptions of the methods. A message states the key, what was expected, what was found and what to do.

A message names variables, counts and positions. A message never contains a value of a record.
"""

from __future__ import annotations


class SdcError(ValueError):
    """Base class of errors that methods raise deliberately.

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
    """Raised if there are fewer records than k, or none at all."""


class InvalidParameter(SdcError):
    """Raised for a parameter outside its range: k below 2, an unknown algorithm, effort or criterion."""


class UnsupportedCombination(InvalidParameter):
    """Raised for options that are valid separately but that the chosen method does not support in
    combination.
    """


class NotNumeric(SdcError):
    """Raised if a variable is not numeric although the method requires it."""


class NotFinite(SdcError):
    """Raised if a variable contains NaN or infinity."""


class NoVariation(SdcError):
    """Raised if every variable is constant, so that standardisation and information loss are undefined."""


class ShapeMismatch(SdcError):
    """Raised for arrays whose lengths or dimensions do not match."""


class UnsupportedArguments(SdcError):
    """Raised for array types that a kernel cannot be compiled for, or a read-only array that it would write
    to.
    """


class UnknownVariable(SdcError):
    """Raised for a variable name that the frame does not contain, or contains twice."""


class NotAdditive(SdcError):
    """Raised for a table whose additive relations do not hold within the tolerance."""


class ImpossibleProtection(SdcError):
    """Raised if the data, the capacities or the relations make a protection requirement infeasible."""


class SolverFailed(SdcError):
    """Raised if the solver stopped with a status that proves neither a solution nor infeasibility."""
