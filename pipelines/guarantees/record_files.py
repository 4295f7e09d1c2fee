"""Published records as a relation; Spark (in a run) and DuckDB (in an audit) evaluate the same SQL on it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

#: Placeholder for the relation in a query.
RECORDS = "{records}"
#: Maximum number of patterns of non-missing variables that one query counts.
PATTERNS_AT_ONCE = 16
_CLASS_SIZES = (
    "SELECT n, count(*) AS classes{sums} FROM "
    "(SELECT count(*) AS n{parts} FROM {records} GROUP BY {keys}) AS classes GROUP BY n"
)


class PrivateRecords(Protocol):
    """Records of a release together with the unit that k counts, which is not published."""

    def fewest_units(self, variables: Sequence[str]) -> int:
        """Return the smallest number of distinct units in any class."""
        ...


class RecordFiles(ABC):
    """Records of a release, with plain column names.

    In class keys, NULL and NaN are values like any other, -0.0 equals 0.0, and texts are compared byte by
    byte. As sensitive values, NULL and NaN count as missing.

    Attributes
    ----------
    columns : mapping of variable to column
        Columns of the relation. The names are letters and digits, so that no engine needs quotes.
    floating : frozenset of str
        Variables that may have NaN.
    private : PrivateRecords, optional
        The same records with the unit that k counts, if available.
    """

    columns: Mapping[str, str]
    floating: frozenset[str] = frozenset()
    private: PrivateRecords | None = None

    @abstractmethod
    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query in which `RECORDS` is a placeholder for the relation."""

    def class_sizes(self, variables: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Count equivalence classes by their number of records.

        Returns
        -------
        sizes, classes : (s,) int64 arrays
            Sizes in ascending order, and number of classes of each size.
        """
        return sizes_in(self.query(class_sizes_query(self.keys(variables))))

    def fewest_showing(self, variables: Sequence[str], region: Sequence[str], below: int) -> int:
        """Count for each record the records compatible with all its values; return the smallest count, or
        `below`.

        For each pattern of shown variables, the records that show all of them are grouped by their values.

        Parameters
        ----------
        variables : sequence of str
            Variables to match. If a value of the judged record is missing, every value of another record
            matches. If only the other record lacks the value, it does not match.
        region : sequence of str
            Variables in which both records must be equal; a missing value is a value.
        below : int
            Classes of at least this number of equal records are not examined.
        """
        keys, regions = self.keys(variables), self.keys(region)
        names = ", ".join((*keys, *regions))
        shown = " || ".join(f"CASE WHEN {each} IS NULL THEN '0' ELSE '1' END" for each in keys)
        counted = f"SELECT {names}, {shown} AS shown, count(*) AS n FROM {RECORDS} GROUP BY {names}"
        small = self.query(f"SELECT DISTINCT shown FROM ({counted}) AS counted WHERE n < {int(below)}")
        queries = []
        for (pattern,) in sorted(small):
            values = [each for each, bit in zip(keys, pattern, strict=True) if bit == "1"]
            able = " AND ".join(f"{each} IS NOT NULL" for each in values) or "true"
            # the values of the small class that are judged; "true" groups all records
            judged = f"min(CASE WHEN shown = '{pattern}' THEN n END) < {int(below)}"
            group = ", ".join((*values, *regions)) or "true"
            queries.append(
                f"SELECT sum(n) AS records FROM ({counted}) AS counted WHERE {able} GROUP BY {group} "
                f"HAVING {judged}"
            )
        fewest = below
        for first in range(0, len(queries), PATTERNS_AT_ONCE):
            union = " UNION ALL ".join(queries[first : first + PATTERNS_AT_ONCE])
            ((least,),) = self.query(f"SELECT min(records) FROM ({union}) AS counts")
            fewest = min(fewest, int(least))
        return fewest

    def fewest_values(self, variables: Sequence[str], counted: str, withheld: Sequence[str] = ()) -> int:
        """Return the smallest number of distinct values of a variable in any class; 0 if there are no
        classes.

        Missing values are not counted.

        Parameters
        ----------
        variables : sequence of str
            Variables in which the records of a class are equal.
        counted : str
        withheld : sequence of str
            Variables whose values may be withheld: a class without a value of any of them is not counted.
        """
        keys = ", ".join(self.keys(variables))
        (value,) = self.values([counted])
        values = f"count(DISTINCT {value})"
        shown = " + ".join(f"count({each})" for each in self.values(withheld))
        having = f" HAVING {shown} > 0" if withheld else ""
        ((fewest,),) = self.query(
            f"SELECT min(n) FROM (SELECT {values} AS n FROM {RECORDS} GROUP BY {keys}{having}) AS classes"
        )
        return int(fewest or 0)

    def keys(self, variables: Sequence[str]) -> list[str]:
        """Return the columns of the relation that contain the variables."""
        return [self.columns[name] for name in variables]

    def values(self, variables: Sequence[str]) -> list[str]:
        """Return SQL for the values of sensitive variables; NULL if the value is missing or NaN."""
        return [
            f"CASE WHEN NOT isnan({key}) THEN {key} END" if name in self.floating else key
            for name, key in zip(variables, self.keys(variables), strict=True)
        ]


def class_sizes_query(keys: Sequence[str], sums: Sequence[str] = (), values: Sequence[str] = ()) -> str:
    """Return the query that counts classes by size.

    Parameters
    ----------
    keys : sequence of str
        Columns whose combinations are the classes.
    sums : sequence of str
        Further columns that are summed by size in the same pass.
    values : sequence of str
        Further columns whose distinct values are counted in each class; the result has, after the sums, the
        smallest number by size.
    """
    distinct = [(f"count(DISTINCT {name})", f"values{i}") for i, name in enumerate(values)]
    return _CLASS_SIZES.format(
        records=RECORDS,
        keys=", ".join(keys),
        parts="".join(f", {each} AS {name}" for each, name in [*((f"sum({n})", n) for n in sums), *distinct]),
        sums="".join(
            [
                *(f", sum({name}) AS {name}" for name in sums),
                *(f", min({name}) AS {name}" for _, name in distinct),
            ]
        ),
    )


def sizes_in(rows: Sequence[tuple[Any, ...]]) -> tuple[np.ndarray, np.ndarray]:
    """Return class sizes in ascending order and their frequencies, from the rows of `class_sizes_query`."""
    pairs = sorted((int(row[0]), int(row[1])) for row in rows)
    return np.array([n for n, _ in pairs], np.int64), np.array([each for _, each in pairs], np.int64)


def median_size(sizes: np.ndarray, classes: np.ndarray) -> float:
    """Return the median size of classes, given their numbers by size; 0 without classes."""
    if len(sizes) == 0:
        return 0.0
    until, last = np.cumsum(classes), classes.sum() - 1
    middle = sizes[np.searchsorted(until, [last // 2, (last + 1) // 2], side="right")]
    return float(middle.mean())
