"""Changes by protection: number of records, size, and whether the files can be distinguished.

The sampled records are compared (`pipelines.measures.pairs`); Hellinger distances use the whole file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.measure import Measure
from microguard.pipelines.measures.pairs import Pairs
from microguard.pipelines.measures.table_errors import aligned
from microguard.schemas.requirements.requirement import MetricKey, Requirement
from microguard.schemas.specification.model import Specification
from microguard.sdc.utility.changes import changes, hellinger, il1s
from microguard.sdc.utility.propensity import propensity

#: Number of the most frequent categories of a variable for which the propensity model has an indicator.
MOST_CATEGORIES = 20
#: Minimum number of records for each coefficient of the propensity model.
FEWEST_FOR_SCORES = 10
PERTURB_MORE = 'perturb more by [method.parameters], or give the variable the role "other"'


@dataclass(frozen=True)
class Changed:
    """Changes by protection; shares are from 0 to 1 unless stated otherwise.

    Attributes
    ----------
    sampled, of : int
        Number of compared records, and number of all records.
    records, values : float
        Share of records with a changed quasi-identifier, and share of changed values of quasi-identifiers.
    by_variable : mapping of variable to share of records
    il1s : mapping of numeric variable to IL1s
        Mean absolute change over sqrt(2) standard deviations, for records with a value.
    hellinger : mapping of nominal variable to Hellinger distance
        Distance of the frequencies in the whole file, if they are a control table.
    propensity_error : float or None
        Mean squared error of propensity scores: 0 if the files cannot be distinguished, 0.25 if they can be
        distinguished completely; None for too few records.
    propensity_ratio : float or None
        The same error divided by the expected error of two samples of one population.
    """

    sampled: int
    of: int
    records: float
    values: float
    by_variable: dict[str, float]
    il1s: dict[str, float]
    hellinger: dict[str, float]
    propensity_error: float | None
    propensity_ratio: float | None


def _frame(pairs: Pairs, before: bool) -> pd.DataFrame:
    numbers, codes = (
        (pairs.numbers_before, pairs.codes_before) if before else (pairs.numbers_after, pairs.codes_after)
    )
    return pd.concat(
        [pd.DataFrame(numbers, columns=pairs.numeric), pd.DataFrame(codes, columns=pairs.nominal)], axis=1
    )


def _values(pairs: Pairs) -> dict[str, int]:
    """Count the original values of each variable; missing values are not counted."""
    numbers = {
        name: len(np.unique(each[~np.isnan(each)]))
        for name, each in zip(pairs.numeric, pairs.numbers_before.T, strict=True)
    }
    codes = zip(pairs.nominal, pairs.codes_before.T, pairs.categories, strict=True)
    return numbers | {name: len(np.setdiff1d(each, [len(known) - 1])) for name, each, known in codes}


def _il1s(pairs: Pairs, place: int) -> float:
    """Return the IL1s of one variable; 0 if fewer than two records have a value."""
    before, after = pairs.numbers_before[:, [place]], pairs.numbers_after[:, [place]]
    there = ~np.isnan(before).ravel()
    loss = float(il1s(before[there], after[there])[0]) if there.sum() > 1 else 0.0
    return loss if np.isfinite(loss) else 0.0


def _hellinger(comparison: Comparison) -> dict[str, float]:
    distances = {}
    for table, cells in comparison.tables_before.items():
        if len(table) == 1:
            old, new = aligned(table, cells, comparison.tables_after[table])
            distances[table[0]] = hellinger(old, new)
    return distances


def _scores(pairs: Pairs) -> tuple[float, float] | None:
    """Return error and ratio of the propensity scores, from a model with main effects."""
    numbers = np.vstack([pairs.numbers_before, pairs.numbers_after])
    means = np.nanmean(numbers, axis=0) if numbers.size else 0.0
    columns = [np.where(np.isnan(numbers), means, numbers)]
    codes = np.vstack([pairs.codes_before, pairs.codes_after])
    for place in range(codes.shape[1]):
        frequent = np.argsort(-np.bincount(codes[:, place]), kind="stable")[1:MOST_CATEGORIES]
        columns.append((codes[:, [place]] == frequent).astype(np.float64))
    design = np.column_stack(columns)
    if len(design) < FEWEST_FOR_SCORES * (design.shape[1] + 1):
        return None
    scores = propensity(design[: len(pairs)], design[len(pairs) :])
    return scores.error, scores.ratio


class ChangedMeasure(Measure[Comparison, Changed]):
    """Changes of the records by protection."""

    name = "changed"
    section = Changed

    def compute(self, comparison: Comparison) -> Changed | None:
        """Compute the section; return None if the measure does not apply."""
        pairs = comparison.pairs
        if pairs is None:
            return None
        change = changes(_frame(pairs, before=True), _frame(pairs, before=False))
        scores = _scores(pairs)
        return Changed(
            sampled=len(pairs),
            of=pairs.of,
            records=change.records,
            values=float(np.mean(list(change.values.values()))),
            by_variable=change.values,
            il1s={name: _il1s(pairs, place) for place, name in enumerate(pairs.numeric)},
            hellinger=_hellinger(comparison),
            propensity_error=None if scores is None else scores[0],
            propensity_ratio=None if scores is None else scores[1],
        )

    def metrics(self, section: Changed, comparison: Comparison) -> Mapping[MetricKey, float]:
        """Return for each quasi-identifier whether no sampled record changed although it varies in the
        sample.
        """
        if comparison.pairs is None or not comparison.specification.perturbed:
            return {}
        values = _values(comparison.pairs)
        return {
            MetricKey("left_unchanged", name): float(share == 0 and values[name] > 1)
            for name, share in section.by_variable.items()
        }

    def limits(self, specification: Specification) -> Iterator[Requirement]:
        """Require that a perturbation changed every variable that varies."""
        for name in specification.quasi_identifiers if specification.perturbed else ():
            yield Requirement(MetricKey("left_unchanged", name), PERTURB_MORE, at_most=0.0)

    def headline(self, section: Changed, k: int) -> Iterator[str]:
        """Return the sentences that the approver must read first."""
        yield (
            f"{100 * section.records:.3g} % of the records have another value of a protected variable "
            f"({section.sampled:,} of {section.of:,} records compared)."
        )
