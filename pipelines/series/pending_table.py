"""Check of a table that is pending approval: meanwhile, its cells must not have been published with other
values.

A cell keeps the value with which it was first published, and a pending table is not published yet. Another
table may be made and published in the meantime. It was made without the values of the pending table, and the
amounts of one table may be sums of those of the other.

Counts of other units (persons and households of one register, men and women) have no unit in common, although
their measure, their source and their codes have the same names. They are compared by contributors and true
values only. The fingerprints of both sources must show this; otherwise the counts are of the same units.
"""

from __future__ import annotations

from decimal import Decimal
from itertools import chain
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.ledger import Entry
from microguard.pipelines.publication.pending_approval import PendingRelease
from microguard.pipelines.publication.source_fingerprints.conflicts import source_of
from microguard.pipelines.publication.source_fingerprints.source_fingerprint import FILE as FINGERPRINT
from microguard.pipelines.publication.source_fingerprints.source_fingerprint import (
    SourceFingerprint,
    same_records,
)
from microguard.pipelines.publication.source_fingerprints.unit_fingerprint import UnitFingerprint
from microguard.pipelines.tables.cells.identity import COUNT
from microguard.pipelines.tables.published_before import ALIKE, DISTINCTIVE
from microguard.pipelines.tables.published_cells import FILE
from microguard.pipelines.tables.rescaled_duplicates import COINCIDENCE, FEWEST, REVISED
from microguard.schemas.errors import GateRefused

#: Relative difference up to which two ratios count as equal, because published cells do not store how many of
#: their records were rounded.
CLOSE = 0.01
#: Number of sampled units of which none is common, with a probability below 1e-7 if one in ten is common.
SAMPLED = 153
_WEIGHTED_COUNT = f"{COUNT} (weighted)"


def refuse_second_values(waiting: PendingRelease, since: list[Entry], areas: Areas) -> None:
    """Refuse to publish a table if other tables published its cells while it was pending.

    Parameters
    ----------
    since : list of Entry
        Releases that were published since the table was submitted for approval.

    Raises
    ------
    GateRefused
    """
    mine, table = waiting.entry, "table"
    if mine.identity.get("content") != table or mine.successive == "accept":
        return
    others = [
        entry.release_id
        for entry in since
        if entry.identity.get("content") == table and _coincides(mine, entry, areas)
    ]
    if others:
        raise GateRefused(
            f"After the table {mine.release_id} was verified, {len(others)} other table(s) with cells or "
            f"sums of it were published ({', '.join(others[:3])}), so these cells would be published with "
            "second values, or could be computed. Nothing was published. Reject the table (microguard "
            "reject), and run the job again: it then uses the published values, or states why it cannot."
        )


def _coincides(one: Entry, other: Entry, areas: Areas) -> bool:
    """Return whether two tables have sums or cells in common."""
    apart = {COUNT, _WEIGHTED_COUNT} if _counts_other_units(one, other, areas) else set()
    return _sums_the_same(one, other, apart) or _shares_cells(one, other, areas, apart)


def _counts_other_units(one: Entry, other: Entry, areas: Areas) -> bool:
    """Return whether the fingerprints of two tables show that they have no unit in common.

    This is unknown, and False, if a variable of role unit or a fingerprint is missing, if the keys differ, or
    if other units are counted (`table.holding`).
    """
    tables = [each.identity.get("specification", {}).get("table") or {} for each in (one, other)]
    left, right = (
        SourceFingerprint.read(areas.record(each.release_id) / FINGERPRINT) for each in (one, other)
    )
    if any(table.get("holding") for table in tables) or left is None or right is None:
        return False
    if left.key != right.key or left.units is None or right.units is None:
        return False
    return _disjoint(left.units, right.units) and not same_records(left, right)


def _disjoint(left: UnitFingerprint, right: UnitFingerprint) -> bool:
    """Return whether two samples have no unit in common and are large enough to exclude common units."""
    cut = [each.units[-1] for each in (left, right) if each.size > len(each.units)]
    one, other = (each.units[each.units <= min(cut)] if cut else each.units for each in (left, right))
    enough = not cut or min(len(one), len(other)) >= SAMPLED
    return enough and not len(np.intersect1d(one, other, assume_unique=True))


def _sums_the_same(one: Entry, other: Entry, apart: set[str]) -> bool:
    """Return whether two tables sum the same variable of the same source and period.

    They may have no cell that one of them was the first to publish, but sums of them narrow the cells of
    earlier tables together, or are sums of each other.

    Parameters
    ----------
    apart : measures that have the same name in both tables, but sum other units
    """
    mine, theirs = (_summed(each) for each in (one, other))
    common = {name for name, _ in mine[1] & theirs[1]} - apart
    return source_of(one) == source_of(other) and mine[0] == theirs[0] and bool(common)


def _summed(entry: Entry) -> tuple[str, set[tuple[str, bool]]]:
    """Return the period of a table, and the variables that it sums, each with whether it is weighted."""
    specification = entry.identity.get("specification", {})
    table = specification.get("table") or {}
    first = [table.get("value") or COUNT] if table else []
    names = [*first, *chain.from_iterable((table.get("parts") or {}).values())]
    period = str(specification.get("release", {}).get("period") or "")
    return period, {(name, bool(table.get("weighted"))) for name in names}


def _shares_cells(one: Entry, other: Entry, areas: Areas, apart: set[str]) -> bool:
    """Return whether two tables have a cell in common; if a list of cells is lost, whether they have the same
    source.
    """
    cells, others = (_cells(areas, each.release_id) for each in (one, other))
    if cells is None or others is None:
        return source_of(one) == source_of(other)
    identities, known = (
        {each for cell in listed for each in _identities(cell, apart)} for listed in (cells, others)
    )
    return not identities.isdisjoint(known) or _same_amounts(cells, others) or in_another_unit(cells, others)


def _cells(areas: Areas, release_id: str) -> list[dict[str, Any]] | None:
    """Return the cells that a table was the first to publish; None if their list is missing."""
    path = areas.record(release_id) / FILE
    return pq.read_table(path).to_pylist() if path.is_file() else None


def _identities(cell: dict[str, Any], apart: set[str]) -> list[tuple[str, ...]]:
    """Return all keys by which a cell is recognised in other tables, apart from its true value."""
    known: list[tuple[str, ...]] = []
    if cell["measure"] not in apart:
        known.append(("name", cell["source"], cell["period"], cell["measure"], cell["codes"]))
    if cell["members"]:
        known.append(("units", cell["measure"], cell["members"]))
    return known


def _same_amounts(cells: list[dict[str, Any]], others: list[dict[str, Any]]) -> bool:
    """Return whether cells with the same codes have the same true values, and not by chance.

    The rule is that of `published_before.of_the_same_records`: a true value with many digits, or half of the
    cells with common codes.
    """
    amounts = {
        (each["measure"], each["codes"]): Decimal(each["original"]) for each in others if each["original"]
    }
    common = [
        (Decimal(each["original"]), amounts[each["measure"], each["codes"]])
        for each in cells
        if each["original"] and (each["measure"], each["codes"]) in amounts
    ]
    common = [pair for pair in common if any(pair)]
    equal = [amount for amount, other in common if amount == other]
    distinctive = (abs(each).scaleb(-int(each.as_tuple().exponent)) >= DISTINCTIVE for each in equal)
    return any(distinctive) or (bool(equal) and len(equal) >= ALIKE * len(common))


def in_another_unit(cells: list[dict[str, Any]], others: list[dict[str, Any]]) -> bool:
    """Return whether the true values of two tables have a constant ratio, such as 1,000 (thousands of euros).

    Parameters
    ----------
    cells, others : list of dict
        Rows of `FILE`.
    """
    there: dict[str, list[dict[str, Any]]] = {}
    for cell in others:
        for place in _places(cell):
            there.setdefault(place, []).append(cell)
    pairs: dict[tuple[str, str], set[tuple[float, float]]] = {}
    for cell in cells:
        for other in (each for place in _places(cell) for each in there.get(place, ())):
            amounts = (float(cell["original"] or 0), float(other["original"] or 0))
            if all(amounts):
                pairs.setdefault((cell["measure"], other["measure"]), set()).add(amounts)
    return any(_one_ratio(np.array(sorted(each))) for each in pairs.values())


def _places(cell: dict[str, Any]) -> list[str]:
    """Return the keys by which a cell is located in a table of another measure."""
    return [cell["codes"], *([cell["members"]] if cell["members"] else [])]


def _one_ratio(pairs: np.ndarray) -> bool:
    ratios = pairs[:, 0] / pairs[:, 1]
    spread = np.abs(ratios / np.median(ratios) - 1.0)
    if len(ratios) >= FEWEST:
        return bool((spread > CLOSE).sum() <= REVISED * len(ratios))
    # two cells are not enough: one determines the ratio, and another may be the total of the rest
    return bool(len(ratios) > 2 and spread.max() ** (len(ratios) - 2) <= COINCIDENCE)
