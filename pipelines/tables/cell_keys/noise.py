"""Add noise by cell keys to counts, and compute the knowledge of an attacker who knows the method."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.cells.identity import cell_codes
from microguard.pipelines.tables.published_before import (
    PublishedCell,
    PublishedValues,
    StandingValueFails,
    standing_cells,
)
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table import Table
from microguard.sdc.cta import CellTable
from microguard.sdc.cta.cell_keys.differences import Differences
from microguard.sdc.cta.cell_keys.intervals import CountIntervals, count_intervals
from microguard.sdc.cta.cell_keys.noise_table import KEY_SPAN, CellKeyParameters, NoiseTable
from microguard.sdc.cta.cell_keys.posterior import candidates, given_all
from microguard.sdc.cta.counts.count_table import totals
from microguard.sdc.cta.rules.identical_cells import identical_cells, table_of_variables

#: Maximum number of cells that are examined given all other cells: each needs one solve with the factorised
#: matrix.
MOST_LINKED = 4000


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """Published counts, and the knowledge of an attacker who knows everything except the keys.

    Attributes
    ----------
    noise : NoiseTable
    values : (cells,) int64 array, published
    alone : (cells,) array
        Probability of the likeliest true count below the threshold, given the cell's own value.
    examined : (k,) positions of the cells examined given all other cells
    linked : (k,) array
        The same probability given everything that is published.
    intervals : CountIntervals
        Intervals of the small counts among the examined cells.
    """

    noise: NoiseTable
    values: np.ndarray
    alone: np.ndarray
    examined: np.ndarray
    linked: np.ndarray
    intervals: CountIntervals


def noise_table(specification: Specification) -> NoiseTable:
    """Return the noise of a specification, with its defaults filled in.

    Raises
    ------
    SpecificationError
        If the p-table that it names cannot be used.
    """
    table = specification.table
    assert table is not None
    least = table.minimum_frequency or specification.release.k
    if table.noise_table is not None:
        from microguard.pipelines.tables.cell_keys.p_table import read_p_table

        return read_p_table(specification.resolve(table.noise_table), least)
    return NoiseTable.of(CellKeyParameters.of_threshold(least, table.largest_noise, table.noise_variance))


def standing_counts(
    cells: Cells, table: Table, before: Iterable[PublishedCell], *, accepted: bool
) -> PublishedValues:
    """Return the cells published before; refuse new cells next to tables that were not judged jointly.

    Parameters
    ----------
    before : cells of this source and period that were published
    accepted : whether a steward has decided that the tables may be published without a joint judgement

    Raises
    ------
    StandingValueFails
        If cells were published that this table does not have, and this table has new cells.
    """
    listed = list(before)
    standing = standing_cells(cells, table, listed)
    beside = len({cell.codes for cell in listed} - set(cell_codes(cells, table)))
    if beside and not standing.published.all() and not accepted:
        raise StandingValueFails(
            "table.tables: expected every cell of this source and period that was published before, found "
            f"{beside} published cell(s) that are in no table of this run. The noise of a cell in one table "
            "can follow from all tables together. Also name the tables of the earlier release, or set "
            'publish.successive to "accept" if a steward has decided that both may be published'
        )
    return standing


def published_counts(
    cells: Cells, keys: np.ndarray, noise: NoiseTable, standing: PublishedValues
) -> np.ndarray:
    """Return the (cells,) int64 published counts; cells of the same records keep their earlier value.

    Raises
    ------
    StandingValueFails
        If the published value is impossible for the count, or the same records were published with two
        values.
    """
    counts = np.rint(cells.units).astype(np.int64)
    values = noise.perturb(counts, keys)
    records = counts * KEY_SPAN + keys.astype(np.int64)  # cells with equal count and key have equal records
    _, same = np.unique(records, return_inverse=True)
    same = np.where(counts > 0, same, same.max(initial=0) + 1 + np.arange(len(counts)))
    rows = np.flatnonzero(standing.published)
    held = np.full(int(same.max(initial=0)) + 1, -1, np.int64)
    held[same[rows]] = standing.units[rows].astype(np.int64)
    values = np.where(held[same] >= 0, held[same], values)
    contradicted = int(np.sum(values[rows] != standing.units[rows]))
    largest = noise.parameters.largest
    place = np.clip(values - counts + largest, 0, 2 * largest)
    odds = np.take_along_axis(noise.rows(counts), place[:, None], axis=1)[:, 0]
    impossible = int(np.sum((np.abs(values - counts) > largest) | (odds == 0)))
    if contradicted or impossible:
        raise StandingValueFails(
            f"{contradicted + impossible} cell(s) were published with two different values, or with a value "
            "that the noise of this table cannot produce from their count. The source was revised, or "
            "another method published them. Publish the table of another period, or without these cells"
        )
    return np.asarray(values)


def attacked(
    cells: Cells, values: np.ndarray, noise: NoiseTable, *, most_cells: int, seed: int
) -> NoisyCounts:
    """Compute the attacker's posteriors given each cell alone and given all cells, and the intervals.

    Parameters
    ----------
    values : (cells,) published
    most_cells : maximum number of small counts whose interval is computed
    seed : seed of the sample of cells if there are more
    """
    counts = np.rint(cells.units).astype(np.int64)
    free = np.zeros(len(cells))
    room = np.full(len(cells), np.inf)
    whole = CellTable(cells.units, cells.tabulation.relations, free > 0, free, free, room, room)
    variables = identical_cells(whole)
    first = np.unique(variables, return_index=True)[1]
    once = table_of_variables(whole, variables)
    alone = candidates(noise, counts[first], values[first], totals(once).astype(np.int64))
    sure = alone.surest(noise.parameters.k)
    open_ones = drawn_cells(np.flatnonzero(sure > 0), MOST_LINKED, seed)
    small = drawn_cells(
        np.flatnonzero((once.values > 0) & (once.values < noise.parameters.k)), most_cells, seed
    )
    differences = Differences.of(once.relations, values[first])
    together = given_all(alone, once.relations, open_ones)
    linked = differences.known(together, open_ones, alone).surest(noise.parameters.k)
    lower = alone.lower
    lower[differences.occupied] = np.maximum(lower[differences.occupied], 1)
    intervals = count_intervals(lower, alone.upper, once.relations, small)
    return NoisyCounts(
        noise=noise,
        values=values,
        alone=sure[variables],
        examined=first[open_ones],
        linked=linked,
        intervals=CountIntervals(first[intervals.cells], intervals.lower, intervals.upper),
    )


def drawn_cells(cells: np.ndarray, most: int, seed: int) -> np.ndarray:
    """Return all cells, or a sample drawn with the seed, in ascending order."""
    if len(cells) <= most:
        return cells
    return np.sort(np.random.default_rng(seed).choice(cells, size=most, replace=False))
