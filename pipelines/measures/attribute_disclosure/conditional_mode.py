"""Measure how well a column guesses a protected variable, and find columns that determine one.

A column that determines nearly all records counts as one that determines all: one miscoded record in a
million hides nothing of the others. So does one that determines half of the file: a code that one record in
ten lacks gives the section of the others. The region is exempt: no class crosses it, so what is equal within
it is published in any case. Two columns may determine what neither does alone: the years of birth and
of the survey give the age.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

#: Least share of records whose value of the column repeats. A column of unique values (an amount, a weight)
#: determines every variable in the file, from which a reader learns nothing.
REPEATED_SHARE = 0.5
#: Least number of records of a value of the column if the determined variable is numeric or several of its
#: values occur.
OFTEN = 10
#: Least lambda (Goodman and Kruskal 1954) of a column that determines a variable: the share of the errors of
#: the commonest value that the column removes.
NEARLY = 0.95
#: Errors by which a sample refutes a dependency: twice the allowed share, and this many records.
MARGIN = 30
#: Number of best single columns that are tested with every other one; all pairs would grow with the square of
#: the columns.
TRIED_TOGETHER = 3


@dataclass(frozen=True)
class Dependency:
    """A published column whose values nearly always determine the value of a protected variable.

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
    """Counts of how well a column guesses a protected variable.

    Records are guessed by the commonest value of the variable among those with their value of the column,
    themselves left out where these are few (`guessed_right`). Judged are values of the column that occur
    again, or `OFTEN` where the variable is a number.

    Attributes
    ----------
    records, commonest : int
        Of the file, and those that have the commonest value of the variable.
    judged, wrong : int
        Records of judged values, and those among them that are guessed wrong.
    kept, kept_wrong, kept_commonest : int
        The same without the values that occur often and go with several values of the variable, such as
        "unknown"; and how many of the records have the commonest value that goes with one.
    disagreeing, agreeing : int
        Records of values that occur again: those that are not as most of their value, and those of values
        that `NEARLY` always go with one.
    """

    records: int
    commonest: int
    judged: int
    wrong: int
    kept: int
    kept_wrong: int
    kept_commonest: int
    disagreeing: int
    agreeing: int

    @property
    def _left(self) -> float:
        """Share of the records whose value is not the commonest one."""
        return 1.0 - self.commonest / max(self.records, 1)

    @property
    def often_enough(self) -> bool:
        """Whether most records have a value that is frequent enough to be judged."""
        return self.judged >= REPEATED_SHARE * self.records

    @property
    def always(self) -> bool:
        """Whether every value of the column determines the value of the variable."""
        return self.commonest < self.records and self.disagreeing == 0 and self.often_enough

    @property
    def right(self) -> float:
        """Share of the errors of the commonest value that the column removes (lambda)."""
        varies = self.commonest < self.records and self.judged > 0
        return 1.0 - self.wrong / (self._left * self.judged) if varies else 0.0

    @property
    def nearly_all(self) -> bool:
        """Whether nearly every value of the column determines the value of the variable."""
        return self.right >= NEARLY and self.often_enough

    @property
    def nearly(self) -> bool:
        """Whether nearly every value determines the variable, or nearly every value that half of the records
        have.
        """
        if self.nearly_all:
            return True
        left = self.kept - self.kept_commonest
        return self.kept >= REPEATED_SHARE * self.records and self.kept_wrong <= (1.0 - NEARLY) * left > 0

    def refutes(self) -> bool:
        """Return whether these records of a larger file show that the column determines nothing."""
        disagree = self.disagreeing > 2.0 * (1.0 - NEARLY) * self._left * self.records + MARGIN
        return disagree and self.agreeing < REPEATED_SHARE / 2.0 * self.records


def dependencies_among(
    pairs: Sequence[Dependency],
    glance: Mapping[str, np.ndarray],
    nominal: Collection[str],
    region: str | None,
    whole: Callable[[Dependency], Guessing | None] | None = None,
) -> list[Dependency]:
    """Return the pairs with a dependency: a sample refutes most pairs, and the whole file decides the others.

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
    glances = {
        pair: guessing(glance[pair.column], glance[pair.determines], pair.determines in nominal)
        for pair in pairs
    }
    found = []
    for pair, seen in glances.items():
        guessed = seen if whole is None else None if seen.refutes() else whole(pair)
        if guessed is None:
            continue
        always = pair.determines in nominal and guessed.always
        if always or (pair.column != region and guessed.nearly):
            found.append(pair)
    return [*found, *_together(glance, glances, found, region)]


def _together(
    codes: Mapping[str, np.ndarray],
    glances: Mapping[Dependency, Guessing],
    found: list[Dependency],
    region: str | None,
) -> Iterator[Dependency]:
    """Find variables that two columns determine jointly and neither alone, if one of them guesses well.

    Only values that occur often are judged, because the rare ones of two columns are those of a household. A
    pair with the region must guess nearly all of them: in half of the file the region may determine the
    variable alone, which does no harm.
    """
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
                guessed = guessing(both, codes[name], nominal=False)
                if guessed.nearly_all or (guessed.nearly and region not in (one, other)):
                    yield Dependency(one, name, (other,))


def guessing(given: np.ndarray, protected: np.ndarray, nominal: bool) -> Guessing:
    """Count how well codes of values guess codes of a protected variable; both are numbers from 0."""
    width = int(protected.max(initial=0)) + 1
    place, cells = pd.factorize(given * width + protected)
    records, of, value = np.bincount(place), cells // width, cells % width
    total, most = np.zeros((2, int(given.max(initial=0)) + 1), dtype=np.int64)
    np.add.at(total, of, records)
    np.maximum.at(most, of, records)
    often, again, alike = total >= OFTEN, total > 1, most >= NEARLY * total
    wrong = total - np.where(guessed_right(total, most), most, 0)
    judged = again if nominal else often
    kept = judged & (alike | ~often)
    goes_with = kept[of] & (records == most[of])
    return Guessing(
        len(given),
        int(np.bincount(protected).max(initial=0)),
        int(total[judged].sum()),
        int(wrong[judged].sum()),
        int(total[kept].sum()),
        int(wrong[kept].sum()),
        int(np.bincount(value[goes_with], records[goes_with]).max(initial=0)),
        int((total - most)[again].sum()),
        int(total[again & alike].sum()),
    )


def guessed_right(total: Any, most: Any) -> Any:
    """Return whether records with the commonest of `total` values are guessed right (arrays, or columns).

    Few records are guessed by the majority of the others: two of them would always agree by half if each was
    guessed by itself, too.
    """
    return (total >= OFTEN) | (2 * most > total + 1)
