"""Special uniques before and after protection: records that few variables identify (SUDA2).

The search (Elliot, Manning and Ford 2002) uses the sampled records, the region and the nominal variables.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.measure import Measure
from microguard.sdc.risk.suda2 import suda2

#: Maximum size of the sets of variables that are searched; the smaller one applies if there are more than
#: `MANY` variables.
LARGEST_SET, LARGEST_SET_OF_MANY, MANY = 3, 2, 20


@dataclass(frozen=True)
class SpecialUniques:
    """Minimal sample uniques of the sample, and their scores.

    Attributes
    ----------
    sampled : int
    variables : tuple of str
    by_size_before, by_size_after : tuple of int
        Number of minimal sample uniques of one variable, of two, ..., up to all but one.
    records_before, records_after : int
        Records that have a minimal sample unique.
    score_before, score_after : float
        Sums of the scores of all records.
    """

    sampled: int
    variables: tuple[str, ...]
    by_size_before: tuple[int, ...]
    by_size_after: tuple[int, ...]
    records_before: int
    records_after: int
    score_before: float
    score_after: float


class SpecialUniquesMeasure(Measure[Comparison, SpecialUniques]):
    """Special uniques before and after protection: records that few variables identify (SUDA2)."""

    name = "special_uniques"
    section = SpecialUniques

    def compute(self, comparison: Comparison) -> SpecialUniques | None:
        """Compute the section; return None if the measure does not apply."""
        pairs, region = comparison.pairs, comparison.specification.region
        if pairs is None:
            return None
        variables = (*([] if region is None else [region]), *pairs.nominal)
        if len(variables) < 2:
            return None
        most = min(len(variables) - 1, LARGEST_SET if len(variables) <= MANY else LARGEST_SET_OF_MANY)
        where = np.empty((len(pairs), 0), np.int64) if region is None else pairs.regions[:, None]
        before, after = (
            suda2(np.column_stack([where, codes]), most) for codes in (pairs.codes_before, pairs.codes_after)
        )
        return SpecialUniques(
            len(pairs),
            variables,
            tuple(map(int, before.counts.sum(axis=0))),
            tuple(map(int, after.counts.sum(axis=0))),
            int(np.count_nonzero(before.scores)),
            int(np.count_nonzero(after.scores)),
            float(before.scores.sum()),
            float(after.scores.sum()),
        )
