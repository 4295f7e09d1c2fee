"""Limits on the number of secrets that an attacker may learn before an area is called unsafe."""

from __future__ import annotations

from collections.abc import Mapping

from scipy.special import bdtrc

#: Probability that an attacker learns a secret of safe releases by chance. "draws" is the probability that
#: two independent factors of a cell are so near that the rule of three is right. Attackers that are neither
#: here nor "list" have the limit 0.
CHANCE = {"growth": 0.02, "draws": 0.1}
#: Maximum share of sets of units for which a public list of values leaves only one multiset.
MULTISETS = 0.05
#: Probability that an audit of safe releases exceeds a limit by such guesses.
FALSE_ALARM = 1e-3
#: Attackers with a second limit for each variable, and "draws" with one for each period and pair of tables of
#: a variable. A variable of which much is learnt is therefore not hidden by others.
RATED = ("growth", "list", "draws")

#: Number of secrets that were learnt, and of those that could be learnt; then both numbers by attacker.
Rate = tuple[int, int]
Rates = dict[str, Rate]


def limit_of(kind: str, of: int, among: int = 1) -> int:
    """Return the limit; `among` is the number of variables tested together (Bonferroni)."""
    if kind == "list":
        return int(MULTISETS * of)
    return chance_limit(of, CHANCE[kind], FALSE_ALARM / max(among, 1)) if kind in CHANCE else 0


def chance_limit(number: int, chance: float, alarm: float = FALSE_ALARM) -> int:
    """Return the number of successes that more of `number` trials exceed with at most the chance `alarm`."""
    below, limit = -1, number
    while limit - below > 1:
        middle = (below + limit) // 2
        if bdtrc(middle, number, chance) <= alarm:
            limit = middle
        else:
            below = middle
    return limit


def beyond_limits(rates: Mapping[str, Rates], kind: str) -> list[str]:
    """Return the variables of which an attacker learns more than the limit of the variable."""
    tried = {name: each[kind] for name, each in rates.items() if kind in each and any(each[kind])}
    return [name for name, (known, of) in tried.items() if known > limit_of(kind, of, len(tried))]
