"""Structural zeros: impossible key combinations, declared by a rule or a list.

Methods never occupy a combination that does not occur in the original. If a combination occurs although it is
declared impossible, the data contain an error; protection sets its count to 0.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
import pandas as pd
from microguard.sdc.errors import InvalidParameter, ShapeMismatch, UnknownVariable
from microguard.sdc.nominal.frequency import CodedFrame

#: Type of a rule: it receives the distinct combinations as a frame and returns for each whether it is
#: impossible.
Rule = Callable[[pd.DataFrame], "pd.Series | np.ndarray"]
#: Type of a list entry: values of some variables that cannot occur together.
Declared = Rule | Sequence[Mapping[Hashable, object]]


def allowed_combinations(coded: CodedFrame, declared: Declared | None) -> np.ndarray:
    """Return for each key combination whether it is possible, (m,) bool.

    Raises
    ------
    UnknownVariable
        If an entry names an unknown variable.
    InvalidParameter
        If an entry is empty.
    ShapeMismatch
        If a rule does not return one value per combination.
    """
    m = len(coded.frequencies)
    if declared is None:
        return np.ones(m, bool)
    distinct = coded.carriers().reset_index(drop=True)
    if callable(declared):
        impossible = np.asarray(declared(distinct), dtype=bool)
        if impossible.shape != (m,):
            raise ShapeMismatch(
                "structural zeros: expected that the rule returns one truth value per key combination, "
                f"{m}; found shape {impossible.shape}"
            )
        return ~impossible
    impossible = np.zeros(m, bool)
    for entry in declared:
        if not isinstance(entry, Mapping) or len(entry) == 0:
            raise InvalidParameter(
                "structural zeros: expected mappings of at least one name to a value, found another entry"
            )
        impossible |= _matches(distinct, entry)
    return ~impossible


def _matches(distinct: pd.DataFrame, entry: Mapping[Hashable, object]) -> np.ndarray:
    matching = np.ones(len(distinct), bool)
    for name, value in entry.items():
        if name not in distinct.columns:
            raise UnknownVariable(
                f"structural zeros: expected names of variables, found {name!r}", variable=str(name)
            )
        column = distinct[name]
        same = column.isna() if value is None or value is pd.NA else (column == value).fillna(False)
        matching &= same.to_numpy(dtype=bool)
    return matching
