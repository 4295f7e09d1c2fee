"""Predictive power of a column for a protected variable, to find columns that determine one.

A column that determines the variable for nearly all records counts as determining it: one miscoded record in
a million does not protect the others. A column that determines the variable for half of the file also counts:
a code that is missing in one record of ten still discloses the section of the others. The region is exempt:
no class crosses regions, so values that are equal within a region are published in any case. Columns may
jointly determine a variable: the years of birth and of the survey determine the age, three digits a code.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

#: Minimum share of records whose value of the column occurs again. A column of unique values (an amount, a
#: weight) determines every variable within the file, which gives a reader no information.
REPEATED_SHARE = 0.5
#: Minimum number of records with a value of the column, if the determined variable is numeric or has several
#: values among them.
OFTEN = 10
#: Minimum lambda (Goodman and Kruskal 1954) of a column that determines a variable. Lambda is the share of
#: errors that the column removes, compared with guessing the most frequent value.
NEARLY = 0.95
#: Number of errors at which a sample refutes a dependency: twice the allowed share, and at least this many
#: records.
MARGIN = 30
#: Number of best single columns that are tested in pairs with every other column; the time for all pairs
#: would grow with the square of the number of columns.
TRIED_TOGETHER = 3


@dataclass(frozen=True)
class Dependency:
    """A published column whose values nearly always determine the value of a protected variable.

    Attributes
    ----------
    column, determines : str
    beside : tuple of str
        Further columns that are needed to determine the variable; empty if `column` alone determines it.
    """

    column: str
    determines: str
    beside: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.beside:
            return f"{self.column} is published unmodified and determines the protected {self.determines}"
        names = f"{', '.join([self.column, *self.beside[:-1]])} and {self.beside[-1]}"
        return f"{names} are published unmodified and together determine the protected {self.determines}"


@dataclass(frozen=True)
class Guessing:
    """Counts that measure how well a column predicts a protected variable.

    The guess for a record is the most frequent value of the variable among the records with the same column
    value. The record itself is left out if these are few (`guessed_right`). Only column values that repeat
    are judged, or that occur `OFTEN` if the variable is a number.

    Attributes
    ----------
    records, commonest : int
        Records of the file, and records that have the most frequent value of the variable.
    judged, wrong : int
        Records with judged values, and records among them with a wrong guess.
    kept, kept_wrong, kept_commonest : int
        The same without column values that occur often and have several values of the variable, such as
        "unknown"; and the number of these records that have the most frequent value of the variable.
    disagreeing, agreeing : int
        Records whose column value repeats: those that differ from the majority of this value, and those of
        column values that `NEARLY` always have one value of the variable.
    guesses : int
        Number of values of the variable that are guesses for judged records. If there is one, the column
        tells nothing about these records: the few others may be among those that are not judged.
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
    guesses: int

    @property
    def _left(self) -> float:
        """Return the share of records that do not have the most frequent value."""
        return 1.0 - self.commonest / max(self.records, 1)

    @property
    def often_enough(self) -> bool:
        """Return whether most records have a value that is frequent enough to be judged."""
        return self.judged >= REPEATED_SHARE * self.records

    @property
    def always(self) -> bool:
        """Return whether every value of the column determines the value of the variable."""
        return self.guesses > 1 and self.disagreeing == 0 and self.often_enough

    @property
    def right(self) -> float:
        """Return lambda: the share of errors removed by the column, compared with guessing the most frequent
        value.
        """
        return 1.0 - self.wrong / (self._left * self.judged) if self.guesses > 1 else 0.0

    @property
    def nearly_all(self) -> bool:
        """Return whether nearly every value of the column determines the value of the variable."""
        return self.right >= NEARLY and self.often_enough

    @property
    def nearly(self) -> bool:
        """Return whether nearly every column value determines the variable, overall or for half of the
        records.
        """
        if self.nearly_all:
            return True
        left = self.kept - self.kept_commonest
        return self.kept >= REPEATED_SHARE * self.records and self.kept_wrong <= (1.0 - NEARLY) * left > 0

    def refutes(self) -> bool:
        """Return whether these records, a sample of a larger file, refute that the column determines the
        variable.
        """
        disagree = self.disagreeing > 2.0 * (1.0 - NEARLY) * self._left * self.records + MARGIN
        return disagree and self.agreeing < REPEATED_SHARE / 2.0 * self.records


def dependencies_among(
    pairs: Sequence[Dependency],
    glance: Mapping[str, np.ndarray],
    nominal: Collection[str],
    region: str | None,
    whole: Callable[[Sequence[Dependency]], Mapping[Dependency, Guessing]] | None = None,
) -> list[Dependency]:
    """Return the pairs with a dependency: a sample refutes most pairs, and the whole file decides the
    remaining ones.

    Variables that two columns determine jointly are searched in the sample (`glance`) only, with values that
    are frequent there.

    Parameters
    ----------
    pairs : sequence of Dependency
        Each published column with each protected variable.
    glance : mapping of name to integer array (records,)
        Their values in the sampled records, numbered from 0.
    nominal : collection of str
        The protected variables that are nominal.
    region : str or None
    whole : callable, optional
        Returns how well columns predict variables in the whole file, without pairs that cannot be judged.
        Without this function, `glance` is the whole file.
    """
    glances = {
        pair: guessing(glance[pair.column], glance[pair.determines], pair.determines in nominal)
        for pair in pairs
    }
    judged: Mapping[Dependency, Guessing] = glances
    if whole is not None:
        judged = whole([pair for pair, seen in glances.items() if not seen.refutes()])
    found = []
    for pair, guessed in judged.items():
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
    """Find variables that columns determine jointly but not separately, if one of them predicts well.

    More than two columns are tried if no pair determines the variable.

    Only frequent values are judged, because a rare combination of two columns often is a single household. A
    pair with the region must predict nearly all of them: the region alone may determine the variable in half
    of the file, which is permitted.
    """
    for name in dict.fromkeys(pair.determines for pair in glances):
        alone = {
            pair.column: seen.right
            for pair, seen in glances.items()
            if pair.determines == name and pair not in found and seen.often_enough
        }
        ranked = sorted(alone, key=lambda each: -alone[each])
        pairs = {
            (one, other): _guessing_by((one, other), name, codes)
            for place, one in enumerate(ranked[:TRIED_TOGETHER])
            for other in ranked[place + 1 :]
        }
        jointly = [
            pair
            for pair, guessed in pairs.items()
            if guessed.nearly_all or (guessed.nearly and region not in pair)
        ]
        yield from (Dependency(one, name, (other,)) for one, other in jointly)
        often = [pair for pair in pairs if pairs[pair].often_enough]
        if not jointly and often:
            best = max(often, key=lambda pair: pairs[pair].right)
            yield from _more_than_two(best, name, ranked, codes)


def _more_than_two(
    chosen: tuple[str, ...], name: str, columns: Sequence[str], codes: Mapping[str, np.ndarray]
) -> Iterator[Dependency]:
    """Add columns to a pair, each time the one that predicts best with those chosen, until they determine the
    variable.
    """
    reached = _guessing_by(chosen, name, codes).right
    while True:
        more = {
            (*chosen, other): _guessing_by((*chosen, other), name, codes)
            for other in columns
            if other not in chosen
        }
        more = {each: guessed for each, guessed in more.items() if guessed.often_enough}
        if not more:
            return
        chosen = max(more, key=lambda each: more[each].right)
        if more[chosen].nearly_all:
            for each in chosen:  # without those that the others make superfluous
                fewer = tuple(other for other in chosen if other != each)
                chosen = fewer if _guessing_by(fewer, name, codes).nearly_all else chosen
            yield Dependency(chosen[0], name, chosen[1:])
            return
        if more[chosen].right <= reached:
            return
        reached = more[chosen].right


def _guessing_by(columns: Sequence[str], name: str, codes: Mapping[str, np.ndarray]) -> Guessing:
    """Count how well columns together predict a variable, by combinations that are frequent."""
    joint = codes[columns[0]]
    for other in columns[1:]:
        joint = pd.factorize(joint * (codes[other].max(initial=0) + 1) + codes[other])[0]
    return guessing(joint, codes[name], nominal=False)


def guessing(given: np.ndarray, protected: np.ndarray, nominal: bool) -> Guessing:
    """Count how well the codes of one column predict the codes of a protected variable; both are numbered
    from 0.
    """
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
    mode = records == most[of]
    goes_with = kept[of] & mode
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
        len(np.unique(value[judged[of] & mode])),
    )


def guessed_right(total: Any, most: Any) -> Any:
    """Return whether records that have the most frequent of `total` values are guessed right (arrays, or
    columns).

    If there are few records, each is guessed by the majority of the others: with its own vote, each of two
    different records could count as half right.
    """
    return (total >= OFTEN) | (2 * most > total + 1)
