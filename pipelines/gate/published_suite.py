"""Two suites for the published table, which later updates and other teams run in their own context.

Both suites have only built-in expectations of Great Expectations, and their results are public. `SUITE` runs
on every engine, pandas included: the columns, at least k records, and for each key variable at most one
distinct value for k records, which k-anonymity implies. `QUERY_SUITE` counts the key combinations themselves
with a query, which Spark and most databases support, but not pandas.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from microguard.pipelines.engine.column_names import quoted
from microguard.schemas.specification.model import Specification

SUITE = "published.suite.json"
QUERY_SUITE = "published.query.suite.json"
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def write_published_suite(folder: Path, specification: Specification, columns: Sequence[str]) -> None:
    """Write `SUITE` and `QUERY_SUITE` in the format of Great Expectations 1.x."""
    from microguard.pipelines.gate.suite import gx, gxe  # takes seconds to import

    k, region = specification.release.k, [specification.region] if specification.region else []
    groups = {group.name: [*region, *group.variables] for group in specification.clusterings}
    of_every_engine = [
        gxe.ExpectTableColumnsToMatchOrderedList(
            column_list=list(columns), description="the columns of the release"
        ),
        gxe.ExpectTableRowCountToBeBetween(min_value=k, description=f"at least {k} records"),
        *(
            gxe.ExpectColumnProportionOfUniqueValuesToBeBetween(
                column=name, max_value=1 / k, description=f"values of {name} that {k} records have on average"
            )
            for name in dict.fromkeys(name for names in groups.values() for name in names)
        ),
    ]
    of_sql = [
        gxe.UnexpectedRowsExpectation(
            unexpected_rows_query=_rare(names, k),
            description=f"combinations of {group} that at least {k} records have",
        )
        for group, names in groups.items()
    ]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, expectations in ((SUITE, of_every_engine), (QUERY_SUITE, of_sql)):
        suite = gx.ExpectationSuite(name=specification.release.name, expectations=expectations)
        (folder / name).write_text(json.dumps(suite.to_json_dict(), indent=2), encoding="utf-8")


def _rare(names: Sequence[str], k: int) -> str:
    """Return a query for the key combinations of fewer than k records; ``{batch}`` is the batch."""
    keys = ", ".join(name if _PLAIN.fullmatch(name) else quoted(name) for name in names)
    return f"SELECT {keys}, COUNT(*) AS records FROM {{batch}} GROUP BY {keys} HAVING COUNT(*) < {k}"
