"""Totals by single codes: they reveal that the cells of a finished table are sums of some microdata.

Cells have no records to compare. Microdata of the same records have the totals of their one-way margins, so
both are known by code and total, whatever the columns are called. A total is kept to `DIGITS` significant
digits without its power of ten, so that rounded cells and cells in thousands are found too. Codes and totals
are kept as keyed hashes only, a sample of the codes with the smallest hashes (bottom-k, Broder 1997).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

#: Significant digits of a total. With them, one in some thousand totals of other records coincides.
DIGITS = 4
#: Number of codes of each column that are kept: those with the smallest hashes.
CODES = 1024
#: Minimum number of equal totals of common codes, and minimum share of them, for two columns of totals of the
#: same records.
FEWEST, SHARE = 3, 0.5
#: Smaller whole totals are ignored, because they are often equal by chance.
SMALLEST_WHOLE = 1000


@dataclass(frozen=True, eq=False)
class AmountFingerprint:
    """Totals of a source by single codes, one row a total.

    Attributes
    ----------
    measures : (m,) int64 array
        Which column of codes and which amount a total is of.
    codes : (m,) int64 array
        Hash of the code; of the grand total, of none.
    totals : (m, 3) int64 array
        Hashes of the total and of the two totals next to it in the last digit kept.
    """

    measures: np.ndarray
    codes: np.ndarray
    totals: np.ndarray


def amount_fingerprint(
    measures: np.ndarray, codes: np.ndarray, amounts: np.ndarray, salts: np.ndarray
) -> AmountFingerprint:
    """Return the fingerprint of totals, without totals that carry no information.

    Parameters
    ----------
    measures, codes : (m,) int64 arrays, see `AmountFingerprint`; the codes not keyed yet
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
    """(m,) significant digits of each size, from 10^(DIGITS - 1) to 10^DIGITS - 1."""
    exponent = np.floor(np.log10(sizes)) - (DIGITS - 1)
    digits = np.rint(sizes / 10.0**exponent)
    return np.where(digits >= 10**DIGITS, 10 ** (DIGITS - 1), digits).astype(np.int64)


def share_amounts(left: AmountFingerprint | None, right: AmountFingerprint | None) -> bool:
    """Return whether some amount has the same totals in both, by at least half of the common codes."""
    if left is None or right is None:
        return False
    one = pd.DataFrame({"left": left.measures, "code": left.codes, "total": left.totals[:, 0]})
    near = pd.DataFrame({"right": right.measures, "code": right.codes}).join(pd.DataFrame(right.totals))
    both = one.merge(near, on="code")
    both["equal"] = (both[[0, 1, 2]].to_numpy() == both["total"].to_numpy()[:, None]).any(axis=1)
    pairs = both.groupby(["left", "right"])["equal"].agg(["sum", "size"])
    return bool(((pairs["sum"] >= FEWEST) & (pairs["sum"] >= SHARE * pairs["size"])).any())


def mixed(hashes: np.ndarray, salts: np.ndarray) -> np.ndarray:
    """Return keyed hashes: two rounds of SplitMix64 (Steele, Lea and Flood 2014), half a key before each."""
    for salt in salts:
        hashes = hashes ^ salt
        hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        hashes = hashes ^ (hashes >> np.uint64(31))
    return hashes
