"""A suite for the published table, which later updates and other teams run in their own context.

It has only expectations of Great Expectations itself: the columns, at least k records, and no key combination
of fewer than k records, as a query for Spark and most databases. Its results are public.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from microguard.pipelines.engine.column_names import quoted
from microguard.schemas.specification.model import Specification

SUITE = "published.suite.json"
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def write_published_suite(folder: Path, specification: Specification, columns: Sequence[str]) -> None:
    """Write `SUITE` in the format of Great Expectations 1.x."""
    from microguard.pipelines.gate.suite import gx, gxe  # seconds to import

    k, region = specification.release.k, [specification.region] if specification.region else []
    expectations = [
        gxe.ExpectTableColumnsToMatchOrderedList(
            column_list=list(columns), description="the columns of the release"
        ),
        gxe.ExpectTableRowCountToBeBetween(min_value=k, description=f"at least {k} records"),
        *(
            gxe.UnexpectedRowsExpectation(
                unexpected_rows_query=_rare([*region, *group.variables], k),
                description=f"combinations of {group.name} held by at least {k} records",
            )
            for group in specification.clusterings
        ),
    ]
    suite = gx.ExpectationSuite(name=specification.release.name, expectations=expectations)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / SUITE).write_text(json.dumps(suite.to_json_dict(), indent=2), encoding="utf-8")


def _rare(names: Sequence[str], k: int) -> str:
    """Return a query for the key combinations of fewer than k records; ``{batch}`` is the batch."""
    keys = ", ".join(name if _PLAIN.fullmatch(name) else quoted(name) for name in names)
    return f"SELECT {keys}, COUNT(*) AS records FROM {{batch}} GROUP BY {keys} HAVING COUNT(*) < {k}"
