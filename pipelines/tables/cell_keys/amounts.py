"""Product "table" for amounts with cell-key noise: the noise of each amount is independent, and totals are
not additive.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from microguard.pipelines.guarantees.noisy_amounts import NoisyAmounts
from microguard.pipelines.guarantees.original_cells import OriginalCells
from microguard.pipelines.intake.validate import ValidatedInput
from microguard.pipelines.job import Job
from microguard.pipelines.measures.measure import Measured
from microguard.pipelines.measures.registry import measures_of
from microguard.pipelines.tables.cell_keys.amount_measures import AmountComparison, write_noisy_amounts
from microguard.pipelines.tables.cell_keys.noise import MOST_LINKED, drawn_cells, standing_counts
from microguard.pipelines.tables.cell_keys.p_table import KEY, SMALL_KEY, read_amount_p_table
from microguard.pipelines.tables.cell_keys.record_keys import keys_of_amounts
from microguard.pipelines.tables.cell_keys.related_amounts import RelatedAmounts, related_amounts
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.cells.identity import identical_members
from microguard.pipelines.tables.files import published
from microguard.pipelines.tables.groupings import CodeGroups
from microguard.pipelines.tables.problem import few_with_nothing, rule_table
from microguard.pipelines.tables.product import contradicts
from microguard.pipelines.tables.published_before import (
    StandingValueFails,
    held_values,
    new_cells,
)
from microguard.pipelines.tables.published_cells import published_cells, write_published_cells
from microguard.pipelines.tables.table_product import NO_TABLE, ProtectedTable, TableProduct
from microguard.schemas.errors import InputRejected, ProtectionFailed
from microguard.schemas.requirements.requirement import Requirement
from microguard.schemas.requirements.tables import table_requirements
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table_input import table_of
from microguard.sdc.cta import CellTable
from microguard.sdc.cta.cell_keys.amount_posterior import (
    insider_within_level,
    linked_within_level,
    solved,
    uncertainty,
    within_level,
)
from microguard.sdc.cta.cell_keys.amounts import AmountNoise, AmountScaling, Perturbed
from microguard.sdc.cta.rules.identical_cells import identical_cells, table_of_variables
from microguard.sdc.errors import SdcError


def amount_noise(specification: Specification) -> AmountNoise:
    """Return the noise of a specification in the unit of its value.

    Raises
    ------
    SpecificationError
        If a p-table cannot be used.
    """
    table = table_of(specification)
    given = table.noise_scaling
    assert given is not None
    assert table.noise_table is not None
    scaling = AmountScaling(given.p_small, given.p_large, given.flexpoint, given.q, given.epsilon)
    large = read_amount_p_table(specification.resolve(table.noise_table), KEY)
    if table.small_noise_table is None:
        return AmountNoise(scaling, large)
    small = read_amount_p_table(specification.resolve(table.small_noise_table), SMALL_KEY)
    return AmountNoise(scaling, large, small)


def guarantee_of_amounts(specification: Specification, absent: str) -> NoisyAmounts:
    """Return the guarantee with the parameters of the noise and the meaning of cells that are not listed."""
    noise = amount_noise(specification)
    scaling = noise.scaling
    return NoisyAmounts(
        noise.table.largest,
        0.0 if noise.small is None else noise.small.largest,
        scaling.small,
        scaling.large,
        scaling.flexpoint,
        scaling.q,
        scaling.factors,
        noise.separation,
        absent,
    )


@dataclass(frozen=True, eq=False)
class PublishedAmounts:
    """Published amounts and the amounts from which they were computed, in units of the last published digit.

    Attributes
    ----------
    values, fall, rise : (cells,) arrays
        Published amounts, and the largest distance of each below and above its true amount.
    noisy : Perturbed
    """

    values: np.ndarray
    fall: np.ndarray
    rise: np.ndarray
    noisy: Perturbed


def published_amounts(
    cells: Cells, keys: np.ndarray, noise: AmountNoise, digits: int, variables: np.ndarray, held: np.ndarray
) -> PublishedAmounts:
    """Add the noise; cells that were published before keep their published value.

    Parameters
    ----------
    keys : (cells, factors) array
    variables : (cells,) array
        Variable number of each cell: cells with the same number have the same records and get the same value.
    held : (variables,) array
        Earlier published values in units, NaN where there is none.

    Raises
    ------
    InputRejected
        If an amount is negative.
    StandingValueFails
        If a cell was published with another value.
    """
    if cells.gross is None or np.any(cells.gross != cells.units):
        raise InputRejected(
            "A record has a negative amount: expected amounts of at least 0 with cell-key noise. Choose "
            'table.method = "adjustment" or "suppression", or publish gains and losses in separate tables.'
        )
    unit = 10.0**-digits
    largest = cells.largest[:, : len(noise.scaling.factors)] * unit
    noisy = noise.perturb(cells.units * unit, largest, keys)
    # one unit is added for two roundings: of the true amount to the last digit, and of the published amount
    fall, rise = (np.floor(bound / unit + 1.0) * (cells.units > 0) for bound in
                  noise.bounds(cells.units * unit, largest))  # fmt: skip
    values = np.rint(noisy.values / unit)
    earlier = held[variables]
    different = int(np.sum(np.isfinite(earlier) & (earlier != values)))
    if different:
        raise StandingValueFails(
            f"{different} cell(s) were published before with other values than in this table, and two "
            "values of an amount disclose its noise. The source was revised, or the p-tables, "
            "table.noise_scaling or the method changed. Publish with the earlier settings, publish the "
            "table of another period, or leave out these cells"
        )
    in_units = replace(noisy, values=noisy.values / unit, first=noisy.first / unit, scale=noisy.scale / unit)
    return PublishedAmounts(values, fall, rise, in_units)


def attacked(
    amounts: PublishedAmounts, rules: CellTable, variables: np.ndarray, contributors: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute the probability with which a reader estimates each sensitive amount within its protection
    level.

    Returns
    -------
    (chosen,) positions of the examined sensitive cells; for each cell the probability given its own published
    value, and the probability given all published values. An attacker averages values, or tries all draws
    until one combination fits.
    """
    first = np.unique(variables, return_index=True)[1]
    once = table_of_variables(rules, variables)
    noisy = amounts.noisy
    noisy = Perturbed(*(each[first] for each in
                        (noisy.values, noisy.first, noisy.scale, noisy.noise, noisy.odds)))  # fmt: skip
    levels = (once.lower_protection + once.upper_protection) / 2
    chosen = drawn_cells(np.flatnonzero(once.sensitive & (once.values > 0)), MOST_LINKED, seed)
    alone = within_level(noisy, chosen, levels[chosen])
    linked = linked_within_level(noisy, once.relations, chosen, levels[chosen])
    known = noisy, once.values, once.relations, contributors[first], chosen
    linked = np.maximum(linked, insider_within_level(*known, levels[chosen]))
    found = solved(*known)
    return first[chosen], alone, found + (1 - found) * linked


class NoisyAmountTables(TableProduct[AmountComparison]):
    """Tables of one specification, judged together."""

    measures = measures_of("table", ("table", "amount_noise", "changes", "metrics"))

    def protect_counted(
        self, job: Job, screened: ValidatedInput, release_id: str
    ) -> ProtectedTable[AmountComparison]:
        """Tabulate, add the noise, and compute the remaining disclosure.

        Raises
        ------
        InputRejected, GateRefused, ProtectionFailed
        """
        key, noise = job.areas.key(), amount_noise(self.specification)
        factors = len(noise.scaling.factors)
        with job.progress.stage("tabulate"):
            cells = self._tabulated(job, screened, release_id)
            keys = keys_of_amounts(screened.frame, self.specification, cells, key, factors)
            try:
                rules = rule_table(cells, self.specification)
            except SdcError as error:
                raise InputRejected(NO_TABLE.format(error=error)) from error
        with job.progress.stage("adjust"):
            variables = identical_cells(rules, identical_members(cells, self.table))
            try:
                accepted = self.specification.publish.successive == "accept"
                standing = standing_counts(
                    cells, self.table, self._before(self._every_cell(job), cells), accepted=accepted
                )
                held = held_values(variables, standing)
                amounts = published_amounts(cells, keys, noise, self.table.digits, variables, held)
            except StandingValueFails as error:
                raise contradicts(error) from error
        with job.progress.stage("attack"):
            drawn = hmac.new(key, b"cells to check", hashlib.sha256).digest()
            try:
                assert cells.contributors is not None
                seed = int.from_bytes(drawn[:8], "big")
                known = attacked(amounts, rules, variables, cells.contributors, seed)
            except SdcError as error:
                raise ProtectionFailed(
                    f"The disclosure by this table cannot be computed: {error}. Nothing was published. Name "
                    "fewer or smaller tables."
                ) from error
        related = self._related_amounts(job, cells, amounts)
        chosen, _, linked = known
        levels = (rules.lower_protection + rules.upper_protection) / 2
        np.maximum(linked, related.within_level(chosen, levels[chosen]), out=linked)
        comparison = AmountComparison(
            self.table,
            cells,
            rules,
            amounts,
            noise.separation,
            *known,
            related.measures,
            related.earlier,
        )
        nothing = few_with_nothing(cells, self.specification)
        return ProtectedTable(
            comparison,
            published(cells.codes, amounts.values, self.table, nothing),
            standing,
            {**self._origin, "release_id": release_id},
        )

    def _related_amounts(self, job: Job, cells: Cells, amounts: PublishedAmounts) -> RelatedAmounts:
        """Return the posterior given other published variables; None if a steward accepted their release."""
        accepted = self.specification.publish.successive == "accept"
        before = () if accepted else published_cells(job.areas)
        return related_amounts(cells, self.table, amounts.noisy, before, self._origin["period"])

    def original(self, protected: ProtectedTable[AmountComparison]) -> tuple[OriginalCells, CodeGroups]:
        """Return the cells before protection; amounts with noise have no further hierarchies."""
        comparison = protected.comparison
        cells, rules, amounts = comparison.cells, comparison.rules, comparison.noisy
        return OriginalCells(
            cells.codes, cells.units, rules.lower_protection, rules.upper_protection, rules.sensitive,
            amounts.fall, amounts.rise, digits=self.table.digits,
        ), {}  # fmt: skip

    def requirements(self, measured: Measured) -> Iterable[Requirement]:
        """Return the requirements on the written files, and the limits of `[table.quality]`."""
        section = measured.sections["amount_noise"]
        return table_requirements(self.table, bool(section["sensitive"] or section["earlier"]))

    def write_annex(self, folder: Path, protected: ProtectedTable[AmountComparison]) -> None:
        """Write each cell before and after protection, its disclosure probability, and whether it is
        published for the first time.
        """
        comparison = protected.comparison
        cells, rules, noisy = comparison.cells, comparison.rules, comparison.noisy
        levels = np.where(rules.sensitive, (rules.lower_protection + rules.upper_protection) / 2, 0.0)
        unit = 10.0**-self.table.digits
        variances, entropies = uncertainty(noisy.noisy)
        private = {
            "error": (noisy.noisy.first - cells.units) * unit,
            "deviation": np.sqrt(variances) * unit,
            "level": levels * unit,
            "entropy": entropies,
        }
        fresh = new_cells(
            cells, self.table, noisy.values, protected.standing, protected.origin, private=private
        )
        write_published_cells(folder, fresh)
        write_noisy_amounts(folder, comparison)
