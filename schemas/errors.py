"""Errors of a run; each class has the exit code of the command.

A message is one readable paragraph: what was found, what was expected, what to do. It may name columns, keys,
counts and values of the *specification*, never a value of a record, region names included.
"""

from __future__ import annotations


class MicroguardError(Exception):
    """Base of every error a run raises on purpose; nothing is published when one is raised.

    Attributes
    ----------
    exit_code : int
        What the command returns to its caller.
    """

    exit_code = 1


class SpecificationError(MicroguardError):
    """A faulty specification or faulty arguments: all faults in one paragraph.

    Parameters
    ----------
    message : str
        The paragraph.
    faults : tuple of str
        The faults one by one, where there are several.
    """

    exit_code = 2

    def __init__(self, message: str, faults: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.faults = faults or (message,)


class InputRejected(MicroguardError):
    """The input does not fit the specification, or more records were rejected than it allows."""

    exit_code = 3


class GateRefused(MicroguardError):
    """A quality gate, a dependency or the ledger of releases refuses the publication."""

    exit_code = 4


class ProtectionFailed(MicroguardError):
    """A block could not be protected, or the written files do not keep the promise."""

    exit_code = 5
