"""Cells of a table: codes, values in units of the last published digit, and contributors."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from microguard.pipelines.intake.unit_key import unit_key
from microguard.pipelines.tables.empty_cells import absent_codes
from microguard.pipelines.tables.groupings import Grouping, grouping_lines
from microguard.pipelines.tables.hierarchy import paths, refuse_bad_codes
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.table import Table
from microguard.sdc.cta.table.relations import Tabulation, from_cells
from scipy import sparse

if TYPE_CHECKING:  # only for tables with suppressed cells
    from microguard.sdc.suppression import Contributions

#: Upper limit of cell values; larger integers have no exact floating-point representation.
LARGEST_UNITS = 2**53


@dataclass(frozen=True, eq=False)
class Cells:
    """Table before protection, with one row for each cell.

    Attributes
    ----------
    codes : (cells, columns) frame of text
        Code in each column of `Table.columns`, its total mark where the column is summed over.
    units : (cells,) array of whole numbers
        Values in units of the last published digit.
    tabulation : Tabulation
        The same cells in the same order, with the constraints (lines) between them.
    contributors : (cells,) array or None
        Numbers of contributors, if known.
    largest : (cells, m) array
        The m largest contributions by size in units, zero if a cell has fewer.
    gross : (cells,) array or None
        Sum of the sizes of all contributions in units, if known: the denominator of a contributor's share.
    input_columns : mapping of name to (cells,) array
        Levels and capacities in units, costs, and the status as text, if the input has them. If not all
        contributors are protected (requests, waivers): ``protected_contributors`` (number of protected
        contributors), ``protected_largest`` (their largest contribution in units), ``protected_rank`` (rank
        of their first among the largest contributors) and ``protected_share`` (share in percent above which
        the largest contributor is protected, else NaN).
    groupings : tuple of Grouping
        Further hierarchies over a column; the tabulation contains their constraints.
    members : (cells,) array of text or None
        Digest of the set of contributors, keyed by `keyed`; empty if the contributors are unknown. None for
        finished cells.
    totals_summed_anew : int
        Number of given totals that differed from the sum of their parts by rounding.
    largest_difference : float
        The largest of these differences, in units.
    contributions : Contributions or None
        Who contributes how much to which cell, if cells are suppressed.
    """

    codes: pd.DataFrame
    units: np.ndarray
    tabulation: Tabulation
    contributors: np.ndarray | None = None
    largest: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    input_columns: Mapping[str, np.ndarray] = field(default_factory=dict)
    gross: np.ndarray | None = None
    groupings: tuple[Grouping, ...] = ()
    members: np.ndarray | None = None
    totals_summed_anew: int = 0
    largest_difference: float = 0.0
    contributions: Contributions | None = None

    def __len__(self) -> int:
        return len(self.units)

    def keyed(self, secret: bytes) -> Cells:
        """Return the cells with keyed digests, by which nobody without the key can identify a contributor."""
        if self.members is None:
            return self
        derived = hmac.new(secret, b"members of cells", hashlib.sha256).digest()
        digests = [unit_key(each, derived) if each else None for each in self.members]
        texts = ["" if each is None else each.hex() for each in digests]
        keyed = replace(self, members=np.array(texts, dtype="<U32"))
        if self.contributions is None:
            return keyed
        units, place = np.unique(self.contributions.unit, return_inverse=True)
        numbers = np.array([number_of(int(each).to_bytes(8, "big"), derived) for each in units], np.int64)
        return replace(keyed, contributions=replace(self.contributions, unit=numbers[place]))


def tabulated(
    codes: pd.DataFrame,
    table: Table,
    *,
    units: np.ndarray,
    contributors: np.ndarray | None = None,
    largest: np.ndarray | None = None,
    input_columns: Mapping[str, np.ndarray] | None = None,
    gross: np.ndarray | None = None,
    groupings: tuple[Grouping, ...] = (),
    members: np.ndarray | None = None,
) -> Cells:
    """Build the constraints between cells and their margins, and sort the cells by their codes.

    Raises
    ------
    InputRejected
        If levels do not nest or a margin is missing.
    """
    refuse_bad_codes(codes, table)
    largest = np.zeros((len(codes), 0)) if largest is None else largest
    input_columns = dict(input_columns or {})
    if table.counts and table.levels == "secret" and table.zeros == "all":
        absent = absent_codes(codes, table)
        codes = pd.concat([codes, absent], ignore_index=True)
        units, largest = _lengthened(units, len(absent)), _lengthened(largest, len(absent))
        contributors = None if contributors is None else _lengthened(contributors, len(absent))
        input_columns = {name: _lengthened(array, len(absent)) for name, array in input_columns.items()}
        gross = None if gross is None else _lengthened(gross, len(absent))
        members = None if members is None else _lengthened(members, len(absent))
    dimensions, placed = paths(codes, table)
    tabulation, areas = from_cells(dimensions, placed)
    tied = int(np.count_nonzero(tabulation.relations.data > 0))
    untied = int(np.count_nonzero(tabulation.nodes > 0)) - tied
    if untied:
        raise InputRejected(
            f"The table has no margin above {untied} of its cells, counting each cell once for each "
            "dimension: expected the sum of every cell over every dimension. Add the missing margins to "
            "the table, or correct table.parents and table.hierarchies."
        )
    order = np.argsort(areas)
    codes = codes.iloc[order].reset_index(drop=True)
    if groupings:
        lines = sparse.vstack([tabulation.relations, grouping_lines(codes, table, groupings)]).tocsr()
        tabulation = replace(tabulation, relations=lines)
    return Cells(
        codes=codes,
        units=np.asarray(units, float)[order],
        tabulation=tabulation,
        contributors=None if contributors is None else contributors[order],
        largest=largest[order],
        input_columns={name: array[order] for name, array in input_columns.items()},
        gross=None if gross is None else gross[order],
        groupings=groupings,
        members=None if members is None else members[order],
    )


def _lengthened(array: np.ndarray, count: int) -> np.ndarray:
    """Append `count` zeros, rows of zeros or empty texts to an array."""
    return np.concatenate([array, np.zeros((count, *array.shape[1:]), dtype=array.dtype)])


def number_of(identity: bytes, key: bytes = b"") -> int:
    """Return a non-negative number that is derived from an identity."""
    return int.from_bytes(hmac.digest(key, identity, "sha256")[:8], "big") >> 1


def units_of(amounts: Iterable[Decimal], digits: int) -> np.ndarray:
    """Convert exact decimals to integer numbers of units.

    Raises
    ------
    InputRejected
        If a number is too large to be exact.
    """
    whole = [int(amount.scaleb(digits)) for amount in amounts]
    if any(abs(amount) >= LARGEST_UNITS for amount in whole):
        raise InputRejected(
            "A cell has too many digits to be added exactly. Lower table.decimals, or give the values in a "
            "larger unit."
        )
    return np.array(whole, dtype=float)
