"""How well a column guesses a protected variable, and which columns determine one.

Nearly all is as bad as all: one miscoded record in a million hides nothing of the others. Of the region it is
not: no class crosses it, so what is alike in all of it is published in any case. And two columns may tell
what neither does: the years of birth and of the survey, the age.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

#: A column whose values mostly occur once (an amount, a weight) determines everything in the file without
#: telling a reader anything; below this share of records with a repeated value, it is not a dependency.
REPEATED_SHARE = 0.5
#: Records of a value from which a reader can tell what goes with it, where it does not always or is a number.
OFTEN = 10
#: Of what guessing the commonest value leaves wrong, the share that a column must get right to determine a
#: variable (lambda; Goodman and Kruskal 1954).
NEARLY = 0.95
#: Beyond chance, what a glance must find wrong to refute: twice of what is allowed, and so many records.
MARGIN = 30
#: Columns that guess a protected variable best alone and are tried together with every other: all pairs grow
#: with the square of the columns.
TRIED_TOGETHER = 3


@dataclass(frozen=True)
class Dependency:
    """A published column in which (nearly) every value goes with one value of a protected variable.

    Attributes
    ----------
    column, determines : str
    beside : tuple of str
        Further columns, without which it does not; none where it does alone.
    """

    column: str
    determines: str
    beside: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.beside:
            return f"{self.column} is published as it is and determines the protected {self.determines}"
        names = f"{', '.join([self.column, *self.beside[:-1]])} and {self.beside[-1]}"
        return f"{names} are published as they are and together determine the protected {self.determines}"


@dataclass(frozen=True)
class Guessing:
    """How well a protected variable is guessed by a column.

    Attributes
    ----------
    records, commonest : int
        Of the file, and those that have the commonest value of the variable.
    repeated, wrong : int
        Records whose value of the column occurs again; those among them that have another value of the
        variable than most of the records with that value.
    often, often_wrong : int
        The same of values that `OFTEN` records have.
    """

    records: int
    commonest: int
    repeated: int
    wrong: int
    often: int
    often_wrong: int

    @property
    def _left(self) -> float:
        """Share of the records that guessing the commonest value gets wrong."""
        return 1.0 - self.commonest / max(self.records, 1)

    @property
    def always(self) -> bool:
        """Whether every value of the column goes with one value of the variable."""
        varies = self.commonest < self.records
        return varies and self.wrong == 0 and self.repeated >= REPEATED_SHARE * self.records

    @property
    def often_enough(self) -> bool:
        """Whether most records have a value from which a reader can tell."""
        return self.often >= REPEATED_SHARE * self.records

    @property
    def right(self) -> float:
        """Share that the column gets right of what the commonest value gets wrong, by values seen often."""
        varies = self.commonest < self.records and self.often > 0
        return 1.0 - self.often_wrong / (self._left * self.often) if varies else 0.0

    @property
    def nearly(self) -> bool:
        """Whether nearly every one does, of values from which a reader can tell."""
        return self.right >= NEARLY and self.often_enough

    def refutes(self) -> bool:
        """Whether these records, of a larger file, show that it does not."""
        return self.wrong > 2.0 * (1.0 - NEARLY) * self._left * self.records + MARGIN


def dependencies_among(
    pairs: Sequence[Dependency],
    glance: Mapping[str, np.ndarray],
    nominal: Collection[str],
    region: str | None,
    whole: Callable[[Dependency], Guessing | None] | None = None,
) -> list[Dependency]:
    """Those of all pairs that hold: a glance at some records refutes most, the whole file decides.

    What two columns determine together is looked for at the glance alone, by values that are frequent there.

    Parameters
    ----------
    pairs : sequence of Dependency
        Each published column with each protected variable.
    glance : mapping of name to integer array (records,)
        Their values in some records, numbered from 0.
    nominal : collection of str
        The protected variables that are.
    region : str or None
    whole : callable, optional
        How well the column guesses the variable in the whole file, None where its values seldom repeat.
        Without it the glance is the whole file.
    """
    glances = {pair: guessing(glance[pair.column], glance[pair.determines]) for pair in pairs}
    found = []
    for pair, seen in glances.items():
        guessed = seen if whole is None else None if seen.refutes() else whole(pair)
        if guessed is None:
            continue
        always = pair.determines in nominal and guessed.always
        if always or (pair.column != region and guessed.nearly):
            found.append(pair)
    return [*found, *_together(glance, glances, found)]


def _together(
    codes: Mapping[str, np.ndarray], glances: Mapping[Dependency, Guessing], found: list[Dependency]
) -> Iterator[Dependency]:
    """What two columns determine, neither of which does alone: one of them guesses well."""
    for name in dict.fromkeys(pair.determines for pair in glances):
        alone = {
            pair.column: seen.right
            for pair, seen in glances.items()
            if pair.determines == name and pair not in found and seen.often_enough
        }
        ranked = sorted(alone, key=lambda each: -alone[each])
        for place, one in enumerate(ranked[:TRIED_TOGETHER]):
            for other in ranked[place + 1 :]:
                both = pd.factorize(codes[one] * (codes[other].max(initial=0) + 1) + codes[other])[0]
                if guessing(both, codes[name]).nearly:
                    yield Dependency(one, name, (other,))


def guessing(given: np.ndarray, protected: np.ndarray) -> Guessing:
    """How well values guess those of a protected variable; both are numbered from 0, one a record."""
    width = int(protected.max(initial=0)) + 1
    place, cells = pd.factorize(given * width + protected)
    records, of = np.bincount(place), cells // width
    total, most = np.zeros((2, int(given.max(initial=0)) + 1), dtype=np.int64)
    np.add.at(total, of, records)
    np.maximum.at(most, of, records)
    repeated, often, wrong = total > 1, total >= OFTEN, total - most
    return Guessing(
        len(given),
        int(np.bincount(protected).max(initial=0)),
        int(total[repeated].sum()),
        int(wrong[repeated].sum()),
        int(total[often].sum()),
        int(wrong[often].sum()),
    )
