"""Noisy amounts that are sums of each other, such as turnover and its domestic and foreign part.

Each variable has its own noise. The sum of published terms is therefore a second estimate (look) of their
sum, and a sum minus one term is a second estimate of the other term. Such variables are found by the true
values of common cells, not by name: a sum or difference of up to three other variables, or a multiple of one.
The probability that a reader who combines all estimates discloses an amount is computed for the cells of this
table and for earlier published cells: by averaging, and by trying all draws. A draw has few possible values:
for amounts with many digits only one combination of draws adds up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product

import numpy as np
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.cells.identity import COUNT, cell_codes, measures_of
from microguard.pipelines.tables.published_before import CHANGED, PublishedCell
from microguard.schemas.specification.table import Table
from microguard.sdc.cta.cell_keys.amount_posterior import looked_at_twice, uncertainty
from microguard.sdc.cta.cell_keys.amounts import Perturbed
from scipy.special import erf, expit

#: Maximum number of other variables in a relation, and of variables that are compared (in alphabetical
#: order).
MOST_TERMS, MOST_COMPARED = 3, 12
#: Minimum number of cells above 0 in which a relation must hold.
LEAST_CELLS = 3
#: Maximum relative error of a multiple.
ROUNDING = 1e-9
#: Smallest variance of an estimate, in squared units and relative to the largest variance, because some
#: estimates may be linear combinations of others.
_LEAST_VARIANCE, _REDUNDANT = 1e-6, 1e-9


@dataclass(frozen=True, eq=False)
class RelatedAmounts:
    """Further estimates of a table's cells from other published variables, and of these variables from the
    table.

    Attributes
    ----------
    noisy : Perturbed
        The amounts of the table, in units of the last digit.
    amounts : (cells,) array
        True amounts.
    relations : tuple of (names, factors)
        Published variables that, times their factors, add up to the variable of the table.
    terms : dict
        Name of each of these variables, with its `_Term`.
    """

    noisy: Perturbed
    amounts: np.ndarray
    relations: tuple[tuple[tuple[str, ...], np.ndarray], ...]
    terms: dict[str, _Term]

    @property
    def measures(self) -> tuple[tuple[str, ...], ...]:
        """Return the names of the variables in each relation."""
        return tuple(names for names, _ in self.relations)

    def within_level(self, chosen: np.ndarray, levels: np.ndarray) -> np.ndarray:
        """Return for each chosen cell the disclosure probability given all its estimates; 0 if there is only
        one estimate.
        """
        found = np.zeros(len(chosen))
        for looks in self._looks:
            _, here, there = np.intersect1d(chosen, looks.cells, return_indices=True)
            places = chosen[here]
            errors, variances = looks.averaged
            off = (errors - looks.own_errors)[there]
            averaged = looked_at_twice(self.noisy, places, levels[here], off, variances[there])
            found[here] = np.maximum(found[here], _either(looks.solved[there], averaged))
        return found

    @property
    def earlier(self) -> float:
        """Return the largest disclosure probability of an amount that is sensitive in one of the other
        variables.
        """
        return max((looks.earlier for looks in self._looks), default=0.0)

    @cached_property
    def _looks(self) -> list[_Looks]:
        """Return the estimates (looks) one by one, and the estimates that several cells have in common."""
        variance, entropy = uncertainty(self.noisy)
        errors = np.where(self.noisy.scale > 0, self.noisy.first - self.amounts, 0.0)
        names = sorted({name for measures, _ in self.relations for name in measures})
        factors = np.zeros((len(self.relations), len(names)))
        for row, (measures, signs) in enumerate(self.relations):
            factors[row, [names.index(name) for name in measures]] = signs
        if not names:
            return []
        held = np.array([~np.isnan(self.terms[name].amounts) for name in names])
        seen = np.array([held[row != 0].all(axis=0) for row in factors])
        chosen = [(np.array([row]), np.flatnonzero(each)) for row, each in enumerate(seen)]
        for pattern in np.unique(seen.T, axis=0) if len(seen) > 1 else ():
            if pattern.sum() > 1:
                chosen.append((np.flatnonzero(pattern), np.flatnonzero((pattern == seen.T).all(axis=1))))
        found = []
        for rows, cells in chosen:
            used = np.flatnonzero(factors[rows].any(axis=0))
            terms = [self.terms[names[each]] for each in used]
            own = (each[cells] for each in (errors, variance, entropy))
            found.append(_Looks(cells, factors[np.ix_(rows, used)], terms, *own))
        return found


@dataclass(frozen=True, eq=False)
class _Looks:
    """Estimates (looks) of the same cells: (cells,) arrays and (looks, terms) factors."""

    cells: np.ndarray
    factors: np.ndarray
    terms: list[_Term]
    own_errors: np.ndarray
    own_variances: np.ndarray
    own_entropies: np.ndarray

    def _of_terms(self, name: str) -> np.ndarray:
        return np.array([getattr(term, name)[self.cells] for term in self.terms]).T

    @cached_property
    def _errors(self) -> np.ndarray:
        """Return the error of each estimate, (cells, looks)."""
        found: np.ndarray = self._of_terms("errors") @ self.factors.T
        return found

    @cached_property
    def _covariance(self) -> np.ndarray:
        """Return the covariance of the estimates, (cells, looks, looks)."""
        spread = np.einsum("kt,ct,lt->ckl", self.factors, self._of_terms("deviations") ** 2, self.factors)
        least = _LEAST_VARIANCE + _REDUNDANT * np.trace(spread, axis1=1, axis2=2)
        found: np.ndarray = spread + least[:, None, None] * np.eye(len(self.factors))
        return found

    @cached_property
    def averaged(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the error and the variance of the minimum-variance average of the estimates."""
        ones = np.ones((len(self.cells), len(self.factors), 1))
        weights = np.linalg.solve(self._covariance, ones)[:, :, 0]
        total = weights.sum(axis=1)
        return (weights * self._errors).sum(axis=1) / total, 1 / total

    @cached_property
    def _with_own(self) -> np.ndarray:
        """Return the covariance of the differences between the estimates and the published amount."""
        found: np.ndarray = self._covariance + self.own_variances[:, None, None]
        return found

    @cached_property
    def solved(self) -> np.ndarray:
        """Return the probability that a reader who tries all draws finds the right combination.

        The right combination has the probability of its draws. A wrong combination fits by chance, within the
        rounding of all amounts of a relation; its probability is that of normal noise of the same variance.
        """
        off = self.own_errors[:, None] - self._errors
        scaled = np.linalg.solve(self._with_own, off[:, :, None])[:, :, 0]
        wrong = -((off * scaled).sum(axis=1) + np.linalg.slogdet(self._with_own)[1]) / 2
        wrong += np.log((1 + np.abs(self.factors).sum(axis=1)) / np.sqrt(2 * np.pi)).sum()
        right = -self.own_entropies - self._of_terms("entropies").sum(axis=1)
        found: np.ndarray = expit(right - wrong)
        return found

    @property
    def earlier(self) -> float:
        """Return the largest disclosure probability of a sensitive amount of one term."""
        largest = 0.0
        for term, factors in zip(self.terms, self.factors.T, strict=True):
            variance, level = term.deviations[self.cells] ** 2, term.levels[self.cells]
            right = np.broadcast_to(factors, (len(self.cells), len(factors)))[:, :, None]
            known = factors @ np.linalg.solve(self._with_own, right)[:, :, 0].T
            spread = np.sqrt(2 * np.maximum(variance - variance**2 * known, 1e-12))
            placed = _either(self.solved, erf(level / spread))
            largest = max(largest, float(np.where(level > 0, placed, 0.0).max(initial=0.0)))
        return largest


def _either(solved: np.ndarray, placed: np.ndarray) -> np.ndarray:
    return solved + (1 - solved) * placed


def related_amounts(
    cells: Cells, table: Table, noisy: Perturbed, before: Iterable[PublishedCell], period: str
) -> RelatedAmounts:
    """Find the sets of published variables whose sum is the variable of a table.

    Parameters
    ----------
    noisy : Perturbed
        The amounts of this table, in units of the last digit.
    before : iterable of PublishedCell
        All cells published before.
    period : str
        Period of this table; cells of other periods cannot be terms.
    """
    unit = 10.0**-table.digits
    places = {codes: row for row, codes in enumerate(cell_codes(cells, table))}
    terms: dict[str, _Term] = {}
    for cell in before:
        row = places.get(cell.codes)
        known = cell.status == CHANGED and cell.original is not None and cell.value is not None
        if row is None or not known or cell.period != period or _is_other(cell.measure, table):
            continue
        term = terms.setdefault(cell.measure, _Term.of_no_cell(len(cells)))
        if np.isnan(term.amounts[row]):  # a cell keeps the value that was published first
            term.add(row, cell, unit)
    own = cells.units.astype(float)
    return RelatedAmounts(noisy, own, tuple(_relations(own, terms, noisy.first - own)), terms)


def _relations(
    own: np.ndarray, terms: dict[str, _Term], errors: np.ndarray
) -> Iterator[tuple[tuple[str, ...], np.ndarray]]:
    """Return the names of variables whose weighted sum is another variable, and their factors."""
    compared = sorted(terms)[:MOST_COMPARED]
    found: list[set[str]] = []
    for size in range(1, MOST_TERMS + 1):
        for names in combinations(compared, size):
            if any(each <= set(names) for each in found):
                continue
            chosen = [terms[name] for name in names]
            signs = _relation(own, np.array([each.amounts for each in chosen]))
            if signs is None:
                continue
            found.append(set(names))
            if size > 1 or not _is_one_draw(chosen[0], errors):
                yield names, signs


def _is_one_draw(term: _Term, errors: np.ndarray) -> bool:
    """Return whether two variables have equal noise in all common cells, because equal amounts have equal
    keys.
    """
    common = ~np.isnan(term.amounts)
    return bool(np.abs(term.errors - errors)[common].max() <= ROUNDING * term.amounts[common].max())


def _is_other(measure: str, table: Table) -> bool:
    return measure in measures_of(table) or measure.startswith(COUNT)


@dataclass(frozen=True, eq=False)
class _Term:
    """A published variable: true amounts, unknown noise (standard deviation and entropy), and protection
    levels.
    """

    amounts: np.ndarray
    errors: np.ndarray
    deviations: np.ndarray
    levels: np.ndarray
    entropies: np.ndarray

    @classmethod
    def of_no_cell(cls, count: int) -> _Term:
        return cls(np.full(count, np.nan), *(np.zeros(count) for _ in range(4)))

    def add(self, row: int, cell: PublishedCell, unit: float) -> None:
        """Add a cell; if its noise is not stored, assume that readers know its amount up to the published
        digits.
        """
        assert cell.original is not None
        assert cell.value is not None
        error = float(cell.value - cell.original) if cell.error is None else cell.error
        self.amounts[row] = float(cell.original) / unit
        self.errors[row] = error / unit
        self.deviations[row] = (abs(error) if cell.deviation is None else cell.deviation) / unit
        self.levels[row] = (cell.level or 0.0) / unit
        # Only cell-key noise has few possible draws. Lists written by earlier versions do not contain their
        # number.
        unknown = 0.0 if cell.deviation is not None or error == 0 else np.inf
        self.entropies[row] = unknown if cell.entropy is None else cell.entropy


def _relation(own: np.ndarray, terms: np.ndarray) -> np.ndarray | None:
    """Return factors for which the weighted sum of terms equals a variable in every common cell; None if
    there are none.

    Each amount is rounded to the last digit, so that the tolerance is half a unit for each.
    """
    common = ~np.isnan(terms).any(axis=0)
    own, terms = own[common], terms[:, common]
    filled = (own > 0) & (terms > 0).all(axis=0)
    if filled.sum() < LEAST_CELLS:
        return None
    if len(terms) == 1:
        factor = own.sum() / terms[0].sum()
        allowed = ROUNDING * own.max() + (1 + factor) / 2
        return np.array([factor]) if np.abs(own - factor * terms[0]).max() <= allowed else None
    for signs in product((1.0, -1.0), repeat=len(terms)):
        if np.abs(own - np.array(signs) @ terms).max() <= (len(terms) + 1) / 2:
            return np.array(signs)
    return None
