"""Read an office's p-table file, in the format of the R package ptable and of tau-ARGUS.

A text file with a heading and the columns i (true count), j (published count) and p (probability of j given
i), separated by ``;``. For amounts, i and j are amounts divided by the scale of the noise. Further columns
follow from these three: v = j - i, and the upper bound of the cell key, whose order is that of j.
"""

from __future__ import annotations

import csv
import math

import numpy as np
from microguard.schemas.errors import SpecificationError
from microguard.sdc.cta.cell_keys.amounts import AmountNoiseTable
from microguard.sdc.cta.cell_keys.noise_table import NoiseTable
from microguard.sdc.errors import InvalidParameter

KEY, SMALL_KEY = "[table] noise_table", "[table] small_noise_table"
_COLUMNS = ("i", "j", "p")
_TYPE, _ALL = "type", "all"


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
    counts, published, probabilities = _transitions(path, KEY)
    if (counts % 1 != 0).any() or (published % 1 != 0).any():
        raise _refused(KEY, "whole numbers i and j, as it is for counts", "others")
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


def read_amount_p_table(path: str, key: str) -> AmountNoiseTable:
    """Read the noise of amounts divided by its scale; `key` names the file in a refusal.

    Raises
    ------
    SpecificationError
    """
    amounts, published, probabilities = _transitions(path, key)
    try:
        return AmountNoiseTable.from_transitions(amounts, published, probabilities)
    except InvalidParameter as error:
        raise SpecificationError(f"{key}: {error}. Correct the file.") from error


def _transitions(path: str, key: str) -> np.ndarray:
    """Return the columns i, j and p, (3, lines); refuse p-tables that depend on parity (not supported)."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            lines = list(csv.DictReader(file, delimiter=";"))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise _refused(key, "a text file that can be read", type(error).__name__) from error
    missing = [name for name in _COLUMNS if not lines or name not in lines[0]]
    if missing:
        raise _refused(key, f"a heading with {'; '.join(_COLUMNS)}", f"none of {', '.join(missing)}")
    if any((line.get(_TYPE) or _ALL).strip() != _ALL for line in lines):
        raise _refused(key, "lines of type all", "other types, such as even and odd, which are not supported")
    numbers = [[_number(line[name], n, key) for name in _COLUMNS] for n, line in enumerate(lines, 2)]
    return np.array(numbers).T


def _number(text: str | None, line: int, key: str) -> float:
    try:
        number = float(text or "")
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise _refused(key, "numbers with a decimal point in i, j and p", f"something else in line {line}")
    return number


def _refused(key: str, expected: str, found: str) -> SpecificationError:
    return SpecificationError(
        f"{key}: expected {expected}, found {found}. Correct the file, or name another."
    )
