"""Attack on sensitive values in a register by which units wait and whose values are withheld.

The attacker sees all updates: which units entered with each of them, when they were published, and with which
values. They know k, the pool, the required number of distinct values, and the method. They claim

- of units that were published later than their number allowed: that those who waited share a value, and that
  a single unit that ended the wait has another one;
- of every published batch: that the unit which entered last has the rarest value;
- of every batch whose values are withheld: that each unit has the most frequent value of the register, and
  that any two of its units share their value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np


@dataclass(frozen=True)
class Batch:
    """Units of a stratum that are published together.

    Attributes
    ----------
    entered, values : (n,) int arrays
        Update with which each unit entered, ascending, and its true value.
    published : int
        Update of their publication.
    withheld : bool
        Whether they were published without their values.
    """

    entered: np.ndarray
    values: np.ndarray
    published: int
    withheld: bool


#: Decide whether the pending units of a stratum are published, and whether their values are withheld.
Rule = Callable[[np.ndarray, np.random.Generator], tuple[bool, bool]]


@dataclass
class Claims:
    """Claims of one kind: the number of correct claims, and the sum of their prior probabilities."""

    claims: int = 0
    right: int = 0
    expected: float = 0.0

    def add(self, right: Sequence[bool] | np.ndarray, expected: float) -> None:
        """Add claims, each with the probability `expected`."""
        self.claims += len(right)
        self.right += int(np.sum(right))
        self.expected += expected * len(right)

    @property
    def odds(self) -> float:
        """Return the ratio of the odds of a correct claim with and without the attack."""
        if self.right == self.claims:
            return float("inf")
        return self.right / (self.claims - self.right) * (self.claims - self.expected) / self.expected


@dataclass
class Found:
    """Claims of the attacker.

    Attributes
    ----------
    waited, ended : Claims
        Values of units that waited longer than their number asks for, and of those that ended such a wait.
    last : Claims
        That the unit which entered last has the rarest value of its batch.
    withheld, alike : Claims
        That units of withheld batches have the most frequent value, and that two of them share their value.
    """

    waited: Claims = field(default_factory=Claims)
    ended: Claims = field(default_factory=Claims)
    last: Claims = field(default_factory=Claims)
    withheld: Claims = field(default_factory=Claims)
    alike: Claims = field(default_factory=Claims)


def stream(
    random: np.random.Generator, shares: np.ndarray, entrants: int, updates: int, rule: Rule
) -> list[Batch]:
    """Publish the units that enter a stratum, `entrants` with each update.

    Parameters
    ----------
    shares : (v,) float array
        Probabilities of the values.
    """
    batches, entered = [], np.zeros(0, int)
    values = np.zeros(0, int)
    for update in range(updates):
        entered = np.append(entered, np.full(entrants, update))
        values = np.append(values, random.choice(len(shares), entrants, p=shares))
        publish, withheld = rule(values, random)
        if publish:
            batches.append(Batch(entered, values, update, withheld))
            entered = values = np.zeros(0, int)
    return batches


def attack(batches: Sequence[Batch], shares: np.ndarray, pool: int) -> Found:
    """Claim values of the units of all batches, as the module docstring lists.

    Parameters
    ----------
    shares : (v,) float array
        Of the values in the register, which is public.
    pool : int
        Units that a stratum needs.
    """
    found, most = Found(), int(np.argmax(shares))
    for batch in batches:
        if batch.withheld:
            found.withheld.add(batch.values == most, float(shares[most]))
            pairs = [one == other for one, other in combinations(batch.values, 2)]
            found.alike.add(pairs, float(np.square(shares).sum()))
            continue
        of_batch = np.bincount(batch.values, minlength=len(shares)) / len(batch.values)
        waiting = batch.entered < batch.published
        if np.count_nonzero(waiting) >= pool:
            shared = int(np.argmax(of_batch))
            found.waited.add(batch.values[waiting] == shared, float(of_batch[shared]))
            others = np.flatnonzero((of_batch > 0) & (np.arange(len(shares)) != shared))
            if np.count_nonzero(~waiting) == 1:
                found.ended.add(batch.values[~waiting] == others[0], float(of_batch[others[0]]))
        rarest = int(np.argmin(np.where(of_batch > 0, of_batch, 2.0)))
        found.last.add(batch.values[-1:] == rarest, float(of_batch[rarest]))
    return found
