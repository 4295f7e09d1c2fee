"""Parents of codes, derived from their first characters (`table.code_widths`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from microguard.pipelines.engine.column_names import column
from microguard.schemas.specification.model import Specification
from pyspark.sql import DataFrame


def with_parents_of_codes(frame: DataFrame, specification: Specification) -> Specification:
    """Return the specification with `table.parents` set for every column in `table.code_widths`.

    Parameters
    ----------
    frame : DataFrame
        Records or cells that were not rejected.
    """
    table = specification.table
    assert table is not None
    parents = dict(table.parents)
    for name, widths in table.code_widths.items():
        rows = frame.select(column(name).cast("string")).distinct().collect()
        total = table.totals.get(name, table.total)
        parents[name] = parents_by_width([row[0] for row in rows if row[0] not in (None, total)], widths)
    if parents == table.parents:
        return specification
    return specification.model_copy(update={"table": table.model_copy(update={"parents": parents})})


def parents_by_width(codes: Iterable[str], widths: Sequence[int]) -> dict[str, str]:
    """Map each code to its parent: its first characters, as many as the next coarser level has.

    Parameters
    ----------
    widths : sequence of int
        Number of characters of each level, coarse to fine.
    """
    parents: dict[str, str] = {}
    waiting = sorted(codes)
    while waiting:
        code = waiting.pop()
        above = [code[:width].rstrip() for width in widths if width < len(code)]
        if above and above[-1] != code and code not in parents:
            parents[code] = above[-1]
            waiting.append(above[-1])
    return parents
