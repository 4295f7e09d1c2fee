"""Column of a finished table that states which cells are confidential, and the meaning of its codes.

The same letter means different things: S is safe in tau-ARGUS, secondary confidential in the code list
CL_CONF_STATUS of SDMX, and a strike in CL_OBS_STATUS. A code is therefore interpreted by the standard that
the file names, and refused if the file names none.

Sources: SDMX cross-domain code lists CL_CONF_STATUS 1.3 and CL_OBS_STATUS 2.3; tau-ARGUS 4.2, `<STATUS>` of
the metadata; Eurostat, flag c.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import pandas as pd
from microguard.schemas.errors import InputRejected

SDMX = ("DATAFLOW", "STRUCTURE", "STRUCTURE_ID", "ACTION")
"""Columns of SDMX-CSV that contain the name of the data flow."""
OBSERVATION = "OBS_VALUE"
CONFIDENTIALITY = ("CONF_STATUS", "OBS_CONF")
"""Columns whose codes are those of CL_CONF_STATUS (SDMX); older messages call it OBS_CONF."""
QUALITY = ("OBS_STATUS", "OBS_FLAG")
"""Columns that state how a value was obtained; for a confidential value they state at most that it is
suppressed."""

_CONF_STATUS = {"F": "safe", **dict.fromkeys("ACDEGMNOSTX", "sensitive")}
_WORDS = (
    {"safe": "safe", "sensitive": "sensitive", "fixed": "fixed"},
    {"TRUE": "sensitive", "FALSE": "safe"},
    {"True": "sensitive", "False": "safe"},
)
_TAU_ARGUS = {"S": "safe", "U": "sensitive", "P": "fixed", "E": "empty"}
_WITHHELD = frozenset(["Q", "C", "c"])
"""Codes that one standard reads as suppressed or confidential: S in CL_OBS_STATUS, C as a flag of Eurostat
(CL_OBS_STATUS has no C)."""
_AMBIGUOUS = _WITHHELD | {"S", "U"}
"""Codes that one of the standards reads as confidential and another does not."""


def cell_status(frame: pd.DataFrame, others: Iterable[str]) -> tuple[str, Mapping[str, str]] | None:
    """Return the status column and the meaning of its codes; None if there is no such column.

    A column that no standard names is a status only if it has codes of both safe and sensitive cells: for
    example, SEX is F in a table of women.

    Parameters
    ----------
    frame : DataFrame
        All columns as text.
    others : iterable of str
        Columns that are neither dimensions nor numbers.

    Raises
    ------
    InputRejected
        If a column of confidentiality has codes of no standard, or only a column of quality says that cells
        with a value are withheld.
    """
    others = list(others)
    for name in (each for each in others if each.upper() in CONFIDENTIALITY):
        codes = _codes(frame[name])
        if not codes <= _CONF_STATUS.keys():
            raise InputRejected(
                f"The column {name}: expected codes of CL_CONF_STATUS of SDMX ({', '.join(_CONF_STATUS)}), "
                "found others. Replace them by F for cells that are free and C for confidential ones."
            )
        if codes - {"F"}:
            return name, {code: _CONF_STATUS[code] for code in sorted(codes)}
    is_sdmx = any(name in frame for name in (*SDMX, OBSERVATION))
    standards = (*_WORDS, _CONF_STATUS) if is_sdmx else (*_WORDS, _CONF_STATUS, _TAU_ARGUS)
    for name in (each for each in others if each.upper() not in (*CONFIDENTIALITY, *QUALITY)):
        codes = _codes(frame[name])
        for meaning in standards:
            if codes <= meaning.keys() and _tells({meaning[code] for code in codes}):
                return name, {code: meaning[code] for code in sorted(codes)}
    for name in (each for each in others if each.upper() in QUALITY):
        refuse_withheld(_codes(frame[name]) & _WITHHELD, name)
    return None


def _tells(meanings: Collection[str]) -> bool:
    """Return whether codes name both sensitive cells and others."""
    return "sensitive" in meanings and bool({"safe", "empty"} & set(meanings))


def refuse_withheld(codes: Iterable[str], name: str) -> None:
    """Refuse status codes of cells that may be confidential, if the standard of the column is unknown.

    Raises
    ------
    InputRejected
        If there is such a code.
    """
    listed = ", ".join(sorted(codes))
    if listed:
        raise InputRejected(
            f"The column {name}: expected codes without a meaning for confidentiality, found {listed}; "
            "cells with these codes may be confidential although they have a value. Add a column "
            "CONF_STATUS with F for cells that are free and C for confidential ones, and draft that file; "
            "or omit the codes if no cell is confidential."
        )


def refuse_unsaid(statuses: Iterable[str], name: str) -> None:
    """Refuse status codes that the standards read differently, if the source does not name its standard.

    Raises
    ------
    InputRejected
        If there is such a status.
    """
    refuse_withheld(_AMBIGUOUS.intersection(statuses), name)


def _codes(column: pd.Series) -> set[str]:
    return set(column.dropna().str.strip().unique()) - {""}
