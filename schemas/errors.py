"""Errors of a run; each class has its own exit code of the command.

A message is one readable text that states what was found, what was expected and what to do. Several failures
are printed as a table (`refusal_text`). A message may contain columns, keys, counts and values of the
*specification*, but never a value of a record, such as a region name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Failure:
    """One requirement that is not met, or one faulty key. No field contains the value of a record.

    Attributes
    ----------
    key : str
        Name of the metric or key of the specification, for programs.
    what : str
        The metric or key in words.
    found, limit : str
        What was found and what was expected; empty if `what` says both.
    remedy : str
        What the user can do, without a full stop at the end.
    line : str
        Line of the specification that would correct or accept the failure, with its section: ``[quality]
        max_t = 0.4``.
    place : str
        File and line number of the specification, if the key is in the file.
    """

    key: str
    what: str
    found: str = ""
    limit: str = ""
    remedy: str = ""
    line: str = ""
    place: str = ""

    def __str__(self) -> str:
        """Return the failure as a sentence."""
        expected = f" is {self.found}, expected {self.limit}" if self.limit else ""
        remedy = f": {self.remedy}" if self.remedy else ""
        return f"{self.key if expected else self.what}{expected}{remedy}."

    def as_json(self) -> dict[str, str]:
        """Return the non-empty fields for programs."""
        return {name: value for name, value in asdict(self).items() if value}


class MicroguardError(Exception):
    """Base class of all errors that a run raises deliberately; nothing is published if one is raised.

    Parameters
    ----------
    message : str
        The readable text.
    failures : tuple of Failure
        Single failures, if the error consists of several.

    Attributes
    ----------
    exit_code : int
        Exit code of the command.
    """

    exit_code = 1

    def __init__(self, message: str = "", failures: tuple[Failure, ...] = ()) -> None:
        super().__init__(message)
        self.failures = failures


class SpecificationError(MicroguardError):
    """Raised for a faulty specification or faulty arguments; the text lists all faults, one per line."""

    exit_code = 2

    @property
    def faults(self) -> tuple[str, ...]:
        """Return the faults as a list of single faults."""
        return tuple(failure.what for failure in self.failures) or (str(self),)


class InputRejected(MicroguardError):
    """Raised if the input does not agree with the specification, or more records were rejected than it
    allows.
    """

    exit_code = 3


class GateRefused(MicroguardError):
    """Raised if a quality gate, a dependency or the ledger of releases refuses the publication."""

    exit_code = 4


class ProtectionFailed(MicroguardError):
    """Raised if a block could not be protected, or the written files do not fulfil the promise."""

    exit_code = 5


def refusal_text(head: str, failures: Iterable[Failure]) -> str:
    """Return a sentence and the table of failures; failures with the same remedy are grouped, in order of
    occurrence.
    """
    by_remedy: dict[str, list[Failure]] = {}
    for failure in dict.fromkeys(failures):
        by_remedy.setdefault(failure.remedy, []).append(failure)
    return "\n".join([head, *_rows(by_remedy)])


def _rows(by_remedy: Mapping[str, Sequence[Failure]]) -> Iterable[str]:
    every = [failure for group in by_remedy.values() for failure in group]
    columns = [["what", *(each.what for each in every)], ["found", *(each.found for each in every)]]
    what, found = (max(map(len, column)) for column in columns)
    if any(failure.limit for failure in every):
        yield f"  {'what':<{what}}  {'found':>{found}}  limit"
    for remedy, group in by_remedy.items():
        for failure in group:
            yield f"  {failure.what:<{what}}  {failure.found:>{found}}  {failure.limit}".rstrip()
        if remedy:
            yield f"  To do: {remedy}."
        for line in merged_lines(each.line for each in group if each.line):
            yield f"    {line}"


def merged_lines(lines: Iterable[str]) -> list[str]:
    """Return one line for each key; lines that set the same key are merged.

    It contains all items of the key's lists, or the limit that satisfies all failures.
    """
    values: dict[str, list[str]] = {}
    for line in lines:
        key, _, value = line.partition(" = ")
        values.setdefault(key, []).append(value)
    return [f"{key} = {_together(key, list(dict.fromkeys(given)))}" for key, given in values.items()]


def _together(key: str, given: Sequence[str]) -> str:
    """Merge several values of a key into one value."""
    if len(given) == 1:
        return given[0]
    for opening, closing in (("[", "]"), ("{ ", " }")):
        if all(value.startswith(opening) for value in given):
            inside = ", ".join(value.removeprefix(opening).removesuffix(closing) for value in given)
            return f"{opening}{inside}{closing}"
    return (min if " min_" in key else max)(given, key=float)
