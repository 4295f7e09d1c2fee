"""Limits on the number of secrets that an attacker may learn; an area that exceeds one is unsafe."""

from __future__ import annotations

from collections.abc import Mapping

from scipy.special import bdtrc

#: Probability that an attacker learns a secret of safe releases by chance. For "draws" it is the probability
#: that two independent factors of a cell are so close that the rule of three gives the right value. Attackers
#: not listed here have the limit 0, except "list".
CHANCE = {"growth": 0.02, "draws": 0.1}
#: Maximum share of sets of units for which a public list of values admits only one multiset.
MULTISETS = 0.05
#: Probability that an audit of safe releases exceeds a limit by chance alone.
FALSE_ALARM = 1e-3
#: Attackers with an additional limit for each variable; "draws" also has one for each period and pair of
#: tables of a variable. A variable with many learnt secrets is therefore not hidden by the others.
RATED = ("growth", "list", "draws")

#: Types: (secrets learnt, secrets that could be learnt), and these pairs by attacker.
Rate = tuple[int, int]
Rates = dict[str, Rate]


def limit_of(kind: str, of: int, among: int = 1) -> int:
    """Return the limit of an attacker; `among` is the number of variables tested together (Bonferroni)."""
    if kind == "list":
        return int(MULTISETS * of)
    return chance_limit(of, CHANCE[kind], FALSE_ALARM / max(among, 1)) if kind in CHANCE else 0


def chance_limit(number: int, chance: float, alarm: float = FALSE_ALARM) -> int:
    """Return the number of successes that `number` trials exceed with a probability of at most `alarm`."""
    below, limit = -1, number
    while limit - below > 1:
        middle = (below + limit) // 2
        if bdtrc(middle, number, chance) <= alarm:
            limit = middle
        else:
            below = middle
    return limit


def beyond_limits(rates: Mapping[str, Rates], kind: str) -> list[str]:
    """Return the variables about which an attacker learns more than the variable's limit."""
    tried = {name: each[kind] for name, each in rates.items() if kind in each and any(each[kind])}
    return [name for name, (known, of) in tried.items() if known > limit_of(kind, of, len(tried))]
