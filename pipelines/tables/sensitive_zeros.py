"""Refusal of sensitive cells of 0 without an absolute protection level, because a percentage of 0 is 0.

No rule makes a cell of 0 sensitive. Only the user declares such a cell (`table.status`, `table.a_priori`),
because nobody may learn that its contributors contributed nothing. It needs an absolute level, like the zero
safety range of tau-ARGUS, and capacity to move.
"""

from __future__ import annotations

import numpy as np
from microguard.pipelines.tables.a_priori import APriori
from microguard.pipelines.tables.cells.cells import Cells
from microguard.schemas.errors import InputRejected
from microguard.sdc.cta.rules.sensitivity import Sensitivity

_DECLARED = "declared sensitive by table.status or table.a_priori"


def refuse_levels_of_zero(sensitivity: Sensitivity) -> None:
    """Refuse sensitive cells that have no protection level.

    Raises
    ------
    InputRejected
    """
    bare = sensitivity.sensitive & (sensitivity.lower == 0) & (sensitivity.upper == 0)
    if bare.any():
        raise InputRejected(
            f"{int(bare.sum())} cell(s) {_DECLARED} have no protection level, for example cell "
            f"{int(np.argmax(bare))} of cells.parquet in the evidence: expected a level above 0, found "
            "table.safety_range, which is a percentage of the value and does not protect a zero. Set "
            "table.zero_safety_range to the amount by which such a cell must change at least, or set "
            "levels for each of these cells in table.a_priori. Declare a cell safe if everybody knows that "
            "it can only be empty. Nothing was published."
        )


def refuse_fixed_zeros(cells: Cells, a_priori: APriori, stuck: np.ndarray) -> None:
    """Refuse sensitive zeros that may not increase, because every reader would recognise them as structural
    zeros.

    Parameters
    ----------
    stuck : (cells,) boolean array
        Whether the capacity upwards is below the level.

    Raises
    ------
    InputRejected
    """
    fixed = (a_priori.status == "sensitive") & (cells.units == 0) & stuck
    if fixed.any() and not np.any(cells.units < 0):  # a zero may decrease if values may be negative
        raise InputRejected(
            f"{int(fixed.sum())} cell(s) {_DECLARED} may not change, for example cell "
            f"{int(np.argmax(fixed))} of cells.parquet in the evidence: expected an upper capacity of at "
            "least the protection level, found a smaller one by table.upper_capacity or table.a_priori. A "
            "cell that can only be empty has nothing to hide: declare it safe or fixed, or raise its upper "
            "capacity. Nothing was published."
        )
