"""Read an office's own p-table, in the format of the R package ptable and of tau-ARGUS.

A text file with a heading and the columns i (true count), j (published count) and p (probability of j given
i), with ``;`` between them. Further columns follow from these three: v = j - i, and the upper bound of the
cell key, whose order is that of j.
"""

from __future__ import annotations

import csv
import math

import numpy as np
from microguard.schemas.errors import SpecificationError
from microguard.sdc.cta.cell_keys.noise_table import NoiseTable
from microguard.sdc.errors import InvalidParameter

KEY = "[table] noise_table"
_COLUMNS = ("i", "j", "p")


def read_p_table(path: str, least: int) -> NoiseTable:
    """Read the noise of counts.

    Parameters
    ----------
    least : int
        Minimum frequency of the specification: the smallest published count of the table must be the same.

    Raises
    ------
    SpecificationError
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            lines = list(csv.DictReader(file, delimiter=";"))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise _refused("a text file that can be read", type(error).__name__) from error
    missing = [name for name in _COLUMNS if not lines or name not in lines[0]]
    if missing:
        raise _refused(f"a heading with {'; '.join(_COLUMNS)}", f"none of {', '.join(missing)}")
    numbers = np.array([[_number(line[name], n) for name in _COLUMNS] for n, line in enumerate(lines, 2)])
    counts, published, probabilities = numbers.T
    if (counts % 1 != 0).any() or (published % 1 != 0).any():
        raise _refused("whole numbers i and j, as it is for counts", "others")
    try:
        noise = NoiseTable.from_transitions(counts, published, probabilities)
    except InvalidParameter as error:
        raise SpecificationError(f"{KEY}: {error}. Correct the file.") from error
    if noise.parameters.k != least:
        found = noise.parameters.k
        raise SpecificationError(
            f"{KEY}: expected the minimum frequency, {least}, as its smallest published count above 0, found "
            f"{found}. Set table.minimum_frequency = {found}, or name another file."
        )
    return noise


def _number(text: str | None, line: int) -> float:
    try:
        number = float(text or "")
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise _refused("numbers with a decimal point in i, j and p", f"something else in line {line}")
    return number


def _refused(expected: str, found: str) -> SpecificationError:
    return SpecificationError(
        f"{KEY}: expected {expected}, found {found}. Correct the file, or name another."
    )
