"""Disclosure of each sensitive variable by the published classes (attribute disclosure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from microguard.pipelines.measures.classes import Homogeneity
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.measure import Measure
from microguard.schemas.method_registry import method_row
from microguard.schemas.requirements.requirement import MetricKey, Requirement, accept_line
from microguard.schemas.specification.model import Specification
from pyspark.sql import types as t

#: Share of the known texts that belong to one unit only, and least number of distinct texts, from which on a
#: sensitive text counts as a name or note of each unit and not as a category. A file of 200 records has 0.67
#: of its values once if 500 categories are equally frequent, and 0.90 if 2,000 are.
OWN_TEXTS, MANY_TEXTS = 0.9, 19
#: Least number of distinct texts if no two units share one. Of 1,000 drawn files of 10 records, at most 5 %
#: had no category twice, for each column of the reference data with up to 43 categories (19 % of files of 8).
FEWEST_TEXTS = 10
OF_ITS_OWN = (
    "nearly every unit has a text of its own there, as an e-mail address, a name or a note is, and whoever "
    'knows or reads it knows whose record it is: leave it out with role = "identifier", code it into '
    "categories before the run, or have a steward accept it by name in quality.accept"
)
DIVERSE = "set method.min_diversity to 2 or more, "
REMEDY = (
    f"{DIVERSE}raise release.k, coarsen the variable, raise the limit, or have "
    "a steward accept it by name in quality.accept"
)


class HomogeneityMeasure(Measure[Comparison, dict[str, Homogeneity]]):
    """Disclosure of each sensitive variable by the published classes."""

    name = "homogeneity"
    section = dict[str, Homogeneity]

    def compute(self, comparison: Comparison) -> dict[str, Homogeneity] | None:
        """Compute the section; return None if the measure does not apply."""
        return dict(comparison.classes_after.homogeneity) or None

    def metrics(self, section: Mapping[str, Homogeneity], comparison: Comparison) -> dict[MetricKey, float]:
        """Return the numbers that the gate may limit."""
        metrics: dict[MetricKey, float] = {}
        for name, part in section.items():
            metrics[MetricKey("homogeneous", name)] = part.homogeneous / max(part.records, 1)
            metrics[MetricKey("entropy_diversity", name)] = part.least_entropy_diversity
            metrics[MetricKey("t", name)] = part.largest_t
            own = _are_own(part) and _is_text(name, comparison)
            metrics[MetricKey("own_text", name)] = (part.once or 0) / max(part.records, 1) if own else 0.0
        return metrics

    def limits(self, specification: Specification) -> Iterator[Requirement]:
        """Return the limits of `[quality]` on these numbers."""
        quality = specification.quality
        diverse = "min_diversity" in method_row("records", specification.method.name).keys
        remedy = REMEDY if diverse else REMEDY.removeprefix(DIVERSE)
        most = quality.default_limit("max_homogeneous")
        alone = quality.default_limit("max_unique_published")
        for name in specification.sensitive:
            if alone is not None:
                accept = accept_line("max_unique_published", accepted=quality.accept)
                yield Requirement(MetricKey("own_text", name), OF_ITS_OWN, at_most=alone, line=accept)
            if most is not None:
                accept = accept_line("max_homogeneous", accepted=quality.accept)
                yield Requirement(MetricKey("homogeneous", name), remedy, at_most=most, line=accept)
            if quality.min_entropy_diversity is not None:
                least = quality.min_entropy_diversity
                line = "[quality] min_entropy_diversity = {below}"
                yield Requirement(MetricKey("entropy_diversity", name), remedy, at_least=least, line=line)
            if quality.max_t is not None:
                line = "[quality] max_t = {above}"
                yield Requirement(MetricKey("t", name), remedy, at_most=quality.max_t, line=line)

    def attacks(self, section: Mapping[str, Homogeneity], k: int) -> Iterator[tuple[float, str]]:
        """Return the shares of records that attackers identify or infer, with sentences."""
        for name, part in section.items():
            share = part.homogeneous / part.records if part.records else 0.0
            cases = f"{100 * share:.3g} % of the cases"
            yield (
                share,
                f"An attacker who identifies a person's class learns {name} with certainty in {cases}.",
            )


def _are_own(part: Homogeneity) -> bool:
    """Return whether the values of a variable are those of single units and not of categories."""
    known, once, values = part.known or 0, part.once or 0, part.values or 0
    share = OWN_TEXTS if values >= MANY_TEXTS else 1.0
    return values >= FEWEST_TEXTS and once >= share * known


def _is_text(name: str, comparison: Comparison) -> bool:
    """Return whether a sensitive variable is text, and not numbers, dates or times written as text."""
    text = isinstance(comparison.protected.schema[name].dataType, t.StringType | t.BinaryType)
    return text and name not in comparison.seldom_shared
