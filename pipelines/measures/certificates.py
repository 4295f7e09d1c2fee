"""Chi-square of the control tables compared with its proved lower bound.

With every method, a published cell has 0 or at least k records. This gives a lower bound for every release
with nominal quasi-identifiers. Frequency methods prove tighter bounds, which are in their reports.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from microguard.pipelines.measures.block_reports import OF_BLOCK, OF_FILE, BlockReports
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.measure import Measure
from microguard.pipelines.measures.table_errors import aligned
from microguard.schemas.specification.sections import Group
from microguard.sdc.nominal.bounds import free_bound
from microguard.sdc.nominal.protected_counts import OBJECTIVE_TOLERANCE, Objective

#: Name of the step that represents the protection as a whole.
WHOLE = "whole"
#: Maximum gap that the page states; a bound with a larger gap contains little information about the
#: protection.
LARGEST_TOLD = 0.5


@dataclass(frozen=True)
class Proved:
    """One objective and its proved lower bound.

    Attributes
    ----------
    step, objective : str
        As in `sdc.nominal.protected_counts.Certificate`.
    value : float
        For a step, the sum over the blocks; for errors, the maximum over the blocks.
    lower_bound, gap : float or None
        The bound, and (value - lower_bound) / value; None if no bound was proved.
    optimal : bool
        Whether the value is proved minimal for the file. With more than one block it never is, because
        optimal protections of the blocks are together not optimal for the file.
    bound_of : str
        Whether the bound holds for every protection of the file, or only given the blocks and the earlier
        steps.
    unproved : str or None
        Why there is no bound.
    blocks : int
        Number of blocks that the value and the bound cover.
    file_value : float or None
        Value of the whole file: its chi-square, or its largest absolute error of a cell, to which all blocks
        contribute. None if the sum over the blocks is the value of the file.
    """

    step: str
    objective: Objective
    value: float
    lower_bound: float | None
    gap: float | None
    optimal: bool
    bound_of: str
    unproved: str | None
    blocks: int = 1
    file_value: float | None = None


def _whole(chi2: float, bound: float, optimal: bool) -> Proved:
    """Return the certificate of the whole file; a proved optimum has gap 0."""
    gap = 0.0 if optimal else 1.0 - bound / chi2
    return Proved(WHOLE, "chi-square", chi2, bound, gap, optimal, OF_FILE, None)


def _steps(reports: BlockReports, chi2: float, largest_error: float | None) -> Iterator[Proved]:
    """Return the certificates of the method's steps over all blocks, together with those of the whole
    file.
    """
    steps = [step for report in reports.blocks for step in report.get("certificates", ())]
    given = OF_FILE if reports.whole_file is None else OF_BLOCK
    for name in dict.fromkeys(step["step"] for step in steps if step["step"] != WHOLE):
        parts = [step for step in steps if step["step"] == name]
        proved = _added(name, parts, given)
        of_file = {"weight": None, "chi-square": chi2, "chi-square and deviations": chi2}
        yield replace(proved, file_value=of_file.get(proved.objective, largest_error))


def _added(name: str, parts: list[dict[str, Any]], given: str) -> Proved:
    """Sum the certificates of a step over the blocks; for the largest error, take the maximum."""
    objective = parts[0]["objective"]
    total = max if objective == "largest error above its allowance" else math.fsum
    value = total([part["value"] for part in parts])
    bounds = [part["lower_bound"] for part in parts if part["lower_bound"] is not None]
    bound = total(bounds) if len(bounds) == len(parts) else None
    gap = None if bound is None else 0.0 if value <= bound else 1.0 - bound / value
    blocks = len(parts)
    optimal = blocks == 1 and parts[0]["optimal"]
    unproved = next((part["unproved"] for part in parts if part["unproved"] is not None), None)
    scope = given if blocks == 1 else OF_BLOCK
    return Proved(name, objective, value, bound, gap, optimal, scope, unproved, blocks)


def _by_clusters(comparison: Comparison, group: Group) -> Proved | None:
    """Return the bound that is valid for every method: each cell below k becomes 0 or k, whichever costs
    less.
    """
    specification = comparison.specification
    known = {*group.variables, specification.region}
    tables = [table for table in comparison.tables_before if set(table) <= known]
    if not tables:
        return None
    chi2 = math.fsum(each.chi2 for each in comparison.table_errors if each.variables in tables)
    bound = math.fsum(
        free_bound(counts, specification.release.k)
        for counts in (
            aligned(table, comparison.tables_before[table], comparison.tables_after[table])[0]
            for table in tables
        )
    )
    return _whole(chi2, bound, chi2 <= bound + OBJECTIVE_TOLERANCE)


def _largest_error(comparison: Comparison, group: Group) -> float | None:
    """Return the largest absolute error of a cell of the control tables of a group."""
    known = {*group.variables, comparison.specification.region}
    errors = [each.max_absolute_error for each in comparison.table_errors if set(each.variables) <= known]
    return float(max(errors)) if errors else None


class CertificatesMeasure(Measure[Comparison, dict[str, tuple[Proved, ...]]]):
    """Chi-square of the control tables compared with its proved lower bound."""

    name = "certificates"
    section = dict[str, tuple[Proved, ...]]

    def compute(self, comparison: Comparison) -> dict[str, tuple[Proved, ...]] | None:
        """Compute the section; return None if the measure does not apply."""
        section = {}
        for group in comparison.specification.clusterings:
            reports = comparison.reports.get(group.name)
            whole = reports.of_file if reports is not None and reports.records == comparison.records else None
            if reports is not None and whole is not None:
                proof = _whole(whole["objective"], whole["lower_bound"], whole["optimal"])
                largest = _largest_error(comparison, group)
                section[group.name] = (proof, *_steps(reports, proof.value, largest))
            elif comparison.specification.strategy(group) == "other":
                # a bound on all k-anonymous protections is no bound on this protection, which has weaker
                # conditions
                continue
            elif set(group.variables) & set(comparison.specification.nominal):
                free = _by_clusters(comparison, group)
                if free is not None:
                    section[group.name] = (free,)
        return section or None

    def headline(self, section: Mapping[str, tuple[Proved, ...]], k: int) -> Iterator[str]:
        """Return the sentences that the approver must read first."""
        for proofs in section.values():
            gap = proofs[0].gap
            if gap is not None and gap <= LARGEST_TOLD:
                yield f"No other protection can reduce chi-square by more than {100 * gap:.2g} %."
