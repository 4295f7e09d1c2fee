"""A row of a table of algorithms: supported variables and efforts, and the function that runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, get_args

from microguard.sdc.algorithms.parameters import Parameters
from microguard.sdc.errors import UnsupportedCombination

Effort = Literal["fast", "standard", "thorough", "exact"]
#: Efforts in ascending order.
EFFORTS: tuple[Effort, ...] = get_args(Effort)
#: Efforts of a construction heuristic, whose result is the same for every effort.
CONSTRUCTION: tuple[Effort, ...] = ("fast", "standard")
#: Efforts of an algorithm that proves no bound for the whole file.
UNPROVED: tuple[Effort, ...] = ("fast", "standard", "thorough")
#: Default maximum number of records in a block. First: algorithms that solve linear or integer programs.
#: Second: algorithms whose work grows with the square of the number of records.
PROGRAMS, SQUARE = 200, 10_000


@dataclass(frozen=True)
class Algorithm:
    """Variables and efforts that an algorithm supports.

    Attributes
    ----------
    code : str
        Module below ``microguard.sdc`` and function, such as ``"safe.protection:solve"``.
    efforts : tuple of str
        Supported efforts. "exact" is for algorithms that prove optimality for the whole file, or state the
        gap.
    parameters : type or None
        Class of the parameters of the algorithm; None if it has no parameters.
    nominal : bool
        Whether the algorithm supports nominal variables.
    one_variable : bool
        Whether the algorithm supports a single variable only.
    record_weights : bool
        Whether the algorithm uses unequal weights of the records.
    max_records : int or None
        Maximum number of records in a block unless ``blocking.max_records`` is set. With None the effort
        determines the maximum.
    """

    code: str
    efforts: tuple[Effort, ...] = EFFORTS
    parameters: type[Parameters] | None = None
    nominal: bool = True
    one_variable: bool = False
    record_weights: bool = True
    max_records: int | None = None

    @property
    def solve(self) -> Callable[..., Any]:
        """Load the function of the algorithm."""
        return loaded(self.code)

    def check(self, name: str, effort: str, parameters: object | None, *, nominal: bool = False) -> None:
        """Refuse an effort or parameters that the algorithm does not support.

        Raises
        ------
        UnsupportedCombination
        """
        if effort not in self.efforts:
            raise UnsupportedCombination(
                f"algorithm {name} does not support effort {effort!r}; choose one of "
                f"{', '.join(self.efforts)}"
            )
        if parameters is None:
            return
        if self.parameters is None or not isinstance(parameters, self.parameters):
            expected = "none" if self.parameters is None else self.parameters.__name__
            found = type(parameters).__name__
            raise UnsupportedCombination(f"parameters of {name}: expected {expected}, found {found}")
        conflict = parameters.conflict(name, effort, nominal)
        if conflict is not None:
            key, allowed = conflict
            raise UnsupportedCombination(f"{key} of algorithm {name}: expected {allowed}")


def loaded(code: str) -> Callable[..., Any]:
    """Import a function named as ``"module:function"``, where the module is below ``microguard.sdc``."""
    module, _, function = code.partition(":")
    solve: Callable[..., Any] = getattr(import_module(f"microguard.sdc.{module}"), function)
    return solve
