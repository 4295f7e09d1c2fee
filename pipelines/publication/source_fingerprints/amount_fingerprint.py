"""Totals by single codes, by which the cells of a finished table are recognised as sums of certain microdata.

A finished table has no records to compare. But its one-way margins equal totals of the microdata from which
it was made, so that pairs of code and total identify both, under any column names. A total is stored with
`DIGITS` significant digits and without its power of ten: rounded cells and cells in thousands are then found
too. Codes and totals are stored as keyed hashes only, for a sample of the codes with the smallest hashes
(bottom-k, Broder 1997).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

#: Significant digits of a total. With this number, about one in some thousand totals of other records agrees
#: by chance.
DIGITS = 4
#: Number of codes of each column that are stored: the ones with the smallest hashes.
CODES = 1024
#: Minimum number and minimum share of equal totals among common codes for which two columns count as totals
#: of the same records.
FEWEST, SHARE = 3, 0.5
#: Minimum whole total that is compared; smaller ones are often equal by chance.
SMALLEST_WHOLE = 1000


@dataclass(frozen=True, eq=False)
class AmountFingerprint:
    """Totals of a source by single codes, one row for each total.

    Attributes
    ----------
    measures : (m,) int64 array
        Number of the combination of code column and amount that a total belongs to.
    codes : (m,) int64 array
        Hash of the code; for the grand total, hash of no code.
    totals : (m, 3) int64 array
        Hashes of the total and of the two totals that differ by one in the last stored digit.
    """

    measures: np.ndarray
    codes: np.ndarray
    totals: np.ndarray


def amount_fingerprint(
    measures: np.ndarray, codes: np.ndarray, amounts: np.ndarray, salts: np.ndarray
) -> AmountFingerprint:
    """Return the fingerprint of the totals, without totals that are often equal by chance.

    Parameters
    ----------
    measures, codes : (m,) int64 arrays, see `AmountFingerprint`; hashes of codes without key
    amounts : (m,) totals
    salts : (2,) uint64 halves of the key
    """
    sizes = np.abs(amounts)
    telling = np.isfinite(sizes) & (sizes > 0) & ((sizes != np.rint(sizes)) | (sizes >= SMALLEST_WHOLE))
    measures, sizes = measures[telling], sizes[telling]
    keyed = mixed(codes[telling].view(np.uint64), salts)
    digits = _digits(sizes)
    near = np.stack([digits, digits - 1, digits + 1], axis=1).astype(np.uint64)
    hashes = mixed(keyed[:, None] ^ near, salts)
    return AmountFingerprint(measures.astype(np.int64), keyed.view(np.int64), hashes.view(np.int64))


def _digits(sizes: np.ndarray) -> np.ndarray:
    """Return the significant digits of each size, (m,), from 10^(DIGITS - 1) to 10^DIGITS - 1."""
    exponent = np.floor(np.log10(sizes)) - (DIGITS - 1)
    digits = np.rint(sizes / 10.0**exponent)
    return np.where(digits >= 10**DIGITS, 10 ** (DIGITS - 1), digits).astype(np.int64)


def share_amounts(left: AmountFingerprint | None, right: AmountFingerprint | None) -> bool:
    """Return whether two amounts have equal totals for at least half of their common codes."""
    if left is None or right is None:
        return False
    one = pd.DataFrame({"left": left.measures, "code": left.codes, "total": left.totals[:, 0]})
    near = pd.DataFrame({"right": right.measures, "code": right.codes}).join(pd.DataFrame(right.totals))
    both = one.merge(near, on="code")
    both["equal"] = (both[[0, 1, 2]].to_numpy() == both["total"].to_numpy()[:, None]).any(axis=1)
    pairs = both.groupby(["left", "right"])["equal"].agg(["sum", "size"])
    return bool(((pairs["sum"] >= FEWEST) & (pairs["sum"] >= SHARE * pairs["size"])).any())


def mixed(hashes: np.ndarray, salts: np.ndarray) -> np.ndarray:
    """Return keyed hashes: two rounds of SplitMix64 (Steele, Lea and Flood 2014), each after adding half of
    the key.
    """
    for salt in salts:
        hashes = hashes ^ salt
        hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        hashes = hashes ^ (hashes >> np.uint64(31))
    return hashes
