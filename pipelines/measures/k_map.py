"""Records whose combination occurs fewer than k times in the population (k-map).

An attacker who searches the person of a record in a register of the population chooses among all persons with
the combination, also those who are not in the file (Sweeney 2002; El Emam and Dankar 2008). The counts are
exact, over both files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.row_hash import DIGESTS, digest
from microguard.pipelines.intake.population import HOLDERS
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.individual_risk import DIGITS
from microguard.pipelines.measures.measure import Measure
from microguard.schemas.requirements.requirement import MetricKey, Requirement
from microguard.schemas.specification.model import Specification
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

REMEDY = "coarsen the variables by which the population is counted, raise k, or raise the limit"
FILE, RECORDS = "file", "records"
_MISSING = "missing"


@dataclass(frozen=True)
class Held:
    """Numbers of records of one file by the population count of their combination.

    Attributes
    ----------
    records : int
    rare : int
        Records whose combination at least one but fewer than k persons have.
    absent : int
        Records whose combination nobody in the population has.
    expected : float
        Expected number of records that a register of the population identifies: the sum of 1 / (number of
        persons with the combination).
    missing : int
        Records among the absent ones that have a missing value; a complete register cannot contain them.
    """

    records: int
    rare: int
    absent: int
    expected: float
    missing: int = 0


@dataclass(frozen=True)
class KMap:
    """Counts of both files, original and protected, against the population.

    Attributes
    ----------
    variables : tuple of str
        Variables by which the population is counted.
    before, after : Held
    """

    variables: tuple[str, ...]
    before: Held
    after: Held


def held(files: Sequence[DataFrame], population: DataFrame, specification: Specification) -> list[Held]:
    """Count the records of each file by the population count of their combination, in one pass.

    Parameters
    ----------
    population : DataFrame
        As returned by `pipelines.intake.population`.
    """
    key = specification.population_key
    missing = reduce(or_, [column(name).isNull() for name in key])
    parts = [
        frame.select(f.lit(file).alias(FILE), *digest(key), missing.alias(_MISSING))
        for file, frame in enumerate(files)
    ]
    together = reduce(DataFrame.unionByName, parts)
    classes = together.groupBy(FILE, *DIGESTS, _MISSING).agg(f.count(f.lit(1)).alias(RECORDS))
    holders = population.select(*digest(key), HOLDERS)
    there = f.coalesce(f.col(HOLDERS), f.lit(0.0))
    rows = (
        classes.join(holders, on=list(DIGESTS), how="left")
        .groupBy(FILE)
        .agg(
            f.sum(RECORDS).alias("records"),
            _records((there > 0) & (there < specification.release.k)).alias("rare"),
            _records(there <= 0).alias("absent"),
            _records((there <= 0) & f.col(_MISSING)).alias("missing"),
            f.sum(f.when(there > 0, f.col(RECORDS) / f.greatest(there, f.lit(1.0)))).alias("expected"),
        )
        .collect()
    )
    by_file = {row[FILE]: _held(row.asDict()) for row in rows}
    return [by_file.get(file, Held(0, 0, 0, 0.0)) for file in range(len(files))]


def _records(condition: Column) -> Column:
    return f.sum(f.when(condition, f.col(RECORDS)).otherwise(0))


def _held(row: Mapping[str, float | None]) -> Held:
    expected = float(f"{row['expected'] or 0.0:.{DIGITS}g}")
    records, rare, absent, missing = (
        int(row[name] or 0) for name in ("records", "rare", "absent", "missing")
    )
    return Held(records, rare, absent, expected, missing)


class KMapMeasure(Measure[Comparison, KMap]):
    """Records whose combination occurs fewer than k times in the population (k-map)."""

    name = "k_map"
    section = KMap

    def compute(self, comparison: Comparison) -> KMap | None:
        """Compute the section; return None if the measure does not apply."""
        screened, specification = comparison.screened, comparison.specification
        if screened.population is None:
            return None
        files = (screened.frame, comparison.protected)
        return KMap(specification.population_key, *held(files, screened.population, specification))

    def metrics(self, section: KMap, comparison: Comparison) -> Mapping[MetricKey, float]:
        """Return the numbers that the gate may limit."""
        after = section.after
        return {MetricKey("below_k_in_population"): (after.rare + after.absent) / max(after.records, 1)}

    def limits(self, specification: Specification) -> Iterator[Requirement]:
        """Return the limits of `[quality]` on these numbers."""
        most = specification.quality.max_below_k_in_population
        if most is not None:
            line = "[quality] max_below_k_in_population = {above}"
            yield Requirement(MetricKey("below_k_in_population"), REMEDY, at_most=most, line=line)

    def attacks(self, section: KMap, k: int) -> Iterator[tuple[float, str]]:
        """Return the shares of records that attackers identify or infer, with sentences.

        A register that lacks combinations of original records is written by other codes or of another day.
        These records count as exposed, because nothing is known about their candidates. What only protected
        records have (a suppressed value) no register can contain.
        """
        before, after = section.before, section.after
        lacking = min(before.absent, after.absent)
        share = (after.rare + lacking) / max(after.records, 1)
        original = (before.rare + before.absent) / max(before.records, 1)
        sentence = (
            f"An intruder with a register of the population that contains {', '.join(section.variables)} "
            f"has fewer than {k} candidates for {100 * share:.3g} % of the records; before protection, for "
            f"{100 * original:.3g} %."
        )
        if before.absent:
            having = f", {before.missing:,} of them with a missing value," if before.missing else ""
            sentence += (
                f" The combinations of {before.absent:,} original records{having} are not in [population]: "
                "compare its codes and its date with those of the records."
            )
        yield share, sentence
