"""Errors of a run; each class has the exit code of the command.

A message is one readable text: what was found, what was expected, what to do. Several failures are a table
(`schemas.refusal`). It may name columns, keys, counts and values of the *specification*, never a value of a
record, region names included.
"""

from __future__ import annotations

from microguard.schemas.refusal import Failure


class MicroguardError(Exception):
    """Base of every error a run raises on purpose; nothing is published when one is raised.

    Parameters
    ----------
    message : str
        The readable text.
    failures : tuple of Failure
        What is not met, one by one, if the error is about several things.

    Attributes
    ----------
    exit_code : int
        What the command returns to its caller.
    """

    exit_code = 1

    def __init__(self, message: str = "", failures: tuple[Failure, ...] = ()) -> None:
        super().__init__(message)
        self.failures = failures


class SpecificationError(MicroguardError):
    """A faulty specification or faulty arguments: all faults in one text, a line each."""

    exit_code = 2

    @property
    def faults(self) -> tuple[str, ...]:
        """The faults one by one."""
        return tuple(failure.what for failure in self.failures) or (str(self),)


class InputRejected(MicroguardError):
    """The input does not fit the specification, or more records were rejected than it allows."""

    exit_code = 3


class GateRefused(MicroguardError):
    """A quality gate, a dependency or the ledger of releases refuses the publication."""

    exit_code = 4


class ProtectionFailed(MicroguardError):
    """A block could not be protected, or the written files do not keep the promise."""

    exit_code = 5
