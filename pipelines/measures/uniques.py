"""Records that are unique on the protected variables joined with unchanged columns.

The attacker of this measure searches for sensitive values and knows the other columns. If there are several
sensitive variables, an attacker may know one of them and search for the others. Hardly two persons have the
same number (savings, a wage), date or time: the number of records that such a variable makes unique is
limited as for any other column. For a categorical variable the number is counted but not limited, because the
k values of a class are nearly always different. The region is already among the protected variables. Groups
of variables are protected one by one: an attacker who knows the variables of all groups has joined them
without any other column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from microguard.pipelines.measures.comparison import Comparison, joined_columns, joins, known_sensitive
from microguard.pipelines.measures.measure import Measure
from microguard.schemas.requirements.requirement import MetricKey, Requirement, accept_line
from microguard.schemas.specification.model import Specification

REMEDY = (
    'protect the column (also a weight, with role = "quasi_identifier" and kind = "numeric"), leave it out '
    'with role = "identifier", raise the limit, or have a steward accept it by name in quality.accept'
)
NUMBER = (
    "anyone who knows this number or date of a person learns the other sensitive variables: round it or "
    f"recode it into bands before the run, or {REMEDY}"
)
GROUPED = f"protect the groups of variables as one, or {REMEDY}"


@dataclass(frozen=True)
class Uniques:
    """Records that are unique on the protected variables joined with one unchanged column, by column, and
    with all of them.

    `by_sensitive`: the same for each sensitive variable, if there are several; `numbers`: the sensitive
    variables with numbers, dates or times, to which the limit applies.
    """

    records: int
    by_column: dict[str, int]
    jointly: int
    by_sensitive: dict[str, int] = field(default_factory=dict)
    numbers: tuple[str, ...] = ()


class UniquesMeasure(Measure[Comparison, Uniques]):
    """Records that are unique on the protected variables joined with published columns."""

    name = "uniques_published"
    section = Uniques

    def compute(self, comparison: Comparison) -> Uniques | None:
        """Compute the section; return None if the measure does not apply."""
        specification, counts = comparison.specification, comparison.classes_after.alone
        alone = dict(zip(joins(specification), counts, strict=True))
        if not alone:
            return None
        columns = joined_columns(specification)
        return Uniques(
            comparison.records,
            {name: alone[name,] for name in columns},
            alone.get(columns, 0),
            {name: alone[name,] for name in specification.sensitive if (name,) in alone},
            comparison.seldom_shared,
        )

    def metrics(self, section: Uniques, comparison: Comparison) -> Mapping[MetricKey, float]:
        """Return the numbers that the gate may limit."""
        records = max(section.records, 1)
        by_column = {
            MetricKey("unique_published", name): n / records for name, n in section.by_column.items()
        }
        by_number = {
            MetricKey("unique_with_number", name): n / records if name in section.numbers else 0.0
            for name, n in section.by_sensitive.items()
        }
        return by_column | by_number | {MetricKey("unique_jointly"): section.jointly / records}

    def limits(self, specification: Specification) -> Iterator[Requirement]:
        """Return the limits of `[quality]` on these numbers."""
        columns, quality = joined_columns(specification), specification.quality
        names = ("max_unique_published", "max_unique_jointly")
        one, all_of_them = map(quality.default_limit, names)
        accept_one, accept_all = (accept_line(name, accepted=quality.accept) for name in names)
        if one is not None:
            for name in columns:
                yield Requirement(MetricKey("unique_published", name), REMEDY, at_most=one, line=accept_one)
            for name in known_sensitive(specification):
                if specification.variables[name].kind != "nominal":
                    yield Requirement(
                        MetricKey("unique_with_number", name), NUMBER, at_most=one, line=accept_one
                    )
        grouped = bool(specification.groups)
        if all_of_them is not None and (columns or grouped):
            remedy = GROUPED if grouped else REMEDY
            yield Requirement(MetricKey("unique_jointly"), remedy, at_most=all_of_them, line=accept_all)

    def attacks(self, section: Uniques, k: int) -> Iterator[tuple[float, str]]:
        """Return the shares of records that attackers identify or infer, with sentences."""
        share = section.jointly / section.records if section.records else 0.0
        yield (
            share,
            "An intruder who knows the protected variables and every other published column except the "
            f"sensitive ones identifies a single record in {100 * share:.3g} % of the cases.",
        )
        for name, found in section.by_sensitive.items():
            share = found / section.records if section.records else 0.0
            yield (
                share,
                f"An intruder who knows the protected variables and {name} identifies a single record and "
                f"learns its other sensitive variables in {100 * share:.3g} % of the cases.",
            )
