"""Structural zeros: combinations that cannot be, declared by a rule or a list.

A method never occupies a combination that did not occur; one that did occur although it cannot be (an
error in the data) is emptied.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
import pandas as pd
from microguard.sdc.errors import InvalidParameter, ShapeMismatch, UnknownVariable
from microguard.sdc.nominal.frequency import CodedFrame

#: A rule takes the distinct combinations as a frame and marks the impossible ones.
Rule = Callable[[pd.DataFrame], "pd.Series | np.ndarray"]
#: A list names values of some variables that cannot occur together; others are free.
Declared = Rule | Sequence[Mapping[Hashable, object]]


def allowed_combinations(coded: CodedFrame, declared: Declared | None) -> np.ndarray:
    """Combinations that may be occupied, (m,) bool.

    Raises
    ------
    UnknownVariable, InvalidParameter, ShapeMismatch
        An entry with a name that is no variable; an empty entry; a rule that does not give one mark
        per combination.
    """
    m = len(coded.frequencies)
    if declared is None:
        return np.ones(m, bool)
    distinct = coded.carriers().reset_index(drop=True)
    if callable(declared):
        impossible = np.asarray(declared(distinct), dtype=bool)
        if impossible.shape != (m,):
            raise ShapeMismatch(f"the rule gave marks of shape {impossible.shape} for {m} combinations")
        return ~impossible
    impossible = np.zeros(m, bool)
    for entry in declared:
        if not isinstance(entry, Mapping) or len(entry) == 0:
            raise InvalidParameter("a structural zero is a mapping of at least one name to its value")
        impossible |= _matches(distinct, entry)
    return ~impossible


def _matches(distinct: pd.DataFrame, entry: Mapping[Hashable, object]) -> np.ndarray:
    matching = np.ones(len(distinct), bool)
    for name, value in entry.items():
        if name not in distinct.columns:
            raise UnknownVariable(f"no variable {name!r} for a structural zero", variable=str(name))
        column = distinct[name]
        same = column.isna() if value is None or value is pd.NA else (column == value).fillna(False)
        matching &= same.to_numpy(dtype=bool)
    return matching
