"""Common parts of local suppression and recoding: group of variables, keys, guarantee and report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.versions import deciding_versions, in_words
from microguard.pipelines.guarantees.guarantee import Guarantee
from microguard.pipelines.guarantees.k_anonymity import CATEGORY, KAnonymity
from microguard.pipelines.guarantees.k_anonymity import Group as Classes
from microguard.pipelines.guarantees.record_files import RecordFiles
from microguard.pipelines.method import RecordMethod
from microguard.schemas.specification.sections import Group
from pyspark.sql import Column
from pyspark.sql import functions as f

#: Text that represents a missing value in a key; text files never contain it in a value.
MISSING = "\x1e"
#: Columns of a key combination: its region and its number of records.
REGION, RECORDS = "__region", "__records"


class Coarsening(RecordMethod):
    """Method that replaces values of quasi-identifiers by coarser or missing ones."""

    def guarantees(self) -> Sequence[Guarantee[RecordFiles]]:
        """Promise k-anonymity of the quasi-identifiers."""
        specification, group = self.specification, self.group
        region = () if specification.region is None else (specification.region,)
        classes = (Classes(group.name, tuple(group.variables), region),)
        return (KAnonymity(specification.release.k, "record", classes, True, self.missing),)

    @property
    def missing(self) -> str:
        """Return how k-anonymity counts a missing value."""
        return CATEGORY

    @property
    def group(self) -> Group:
        """Return the single group of all quasi-identifiers; the specification refuses several groups."""
        (group,) = self.specification.clusterings
        return group

    def keys(self) -> dict[str, Column]:
        """Return the region and the quasi-identifiers as text, under the names of key columns."""
        region = self.specification.region
        keys = {REGION: f.lit("") if region is None else _text(region)}
        return keys | {f"__c{j}": _text(name) for j, name in enumerate(self.group.variables)}


def report(
    *, records: int, clusters: int, algorithm: str, objective: float, lower_bound: float, optimal: bool,
    work: Mapping[str, Any], seconds: float,
) -> dict[str, Any]:  # fmt: skip
    """Return the report of a solved block."""
    return {
        "records": records,
        "clusters": clusters,
        "status": "done",
        "algorithm": algorithm,
        "software": in_words(deciding_versions()),
        "objective": objective,
        "lower_bound": lower_bound,
        "gap": 1 - lower_bound / objective if objective else 0.0,
        "optimal": optimal,
        "work": work,
        "seconds": seconds,
    }


def _text(name: str) -> Column:
    """Return a value as text."""
    return f.coalesce(column(name).cast("string"), f.lit(MISSING))
