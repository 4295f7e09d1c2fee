"""Count the records that break each edit rule, before and after protection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.measure import Measure
from microguard.pipelines.measures.rules import violations


@dataclass(frozen=True)
class BrokenRule:
    """Records that break one rule, before and after protection."""

    before: int
    after: int


class EditRulesMeasure(Measure[Comparison, dict[str, BrokenRule]]):
    """Count the records that break each edit rule, before and after protection."""

    name = "edit_rules"
    on_page = False
    section = dict[str, BrokenRule]

    def compute(self, comparison: Comparison) -> dict[str, BrokenRule] | None:
        """Compute the section; None if the measure does not apply."""
        rules = comparison.specification.edit_rules
        if not rules:
            return None
        before = violations(comparison.screened.frame, rules)
        after = violations(comparison.protected, rules)
        return {name: BrokenRule(before[name], after[name]) for name in rules}

    def headline(self, section: Mapping[str, BrokenRule], k: int) -> Iterator[str]:
        """Return the sentences that the approver must read first."""
        for name, rule in section.items():
            yield f"The edit rule {name} is violated by {rule.after:,} records, and was by {rule.before:,}."
