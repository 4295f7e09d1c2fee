"""Count the releases of a public area with pandas alone: independent_count.py LAKE JOB.

It runs in the environment of a lane, without microguard. It writes the published values as sorted lines of
text to ``values.txt``, by which lanes are compared. Exit code 1 means that a release was not accepted, with
the reason.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd

K = 3
RECORDS = dict.fromkeys(("mixed", "nominal", "numeric", "connect"), 400)
TOTAL = "Total"
#: For tables: the limit of the dominance rule, the published unit of amounts, and the base to which counts
#: are rounded.
DOMINANCE, UNIT, BASE = 0.85, 0.01, 5


def main(lake: Path, job: str) -> int:
    """Count every release; return the exit code."""
    lines: list[str] = []
    for manifest in sorted(lake.glob("*/manifest.json")):
        content = json.loads(manifest.read_text())
        if job == "table":
            frame = pd.read_parquet(next((manifest.parent / "table").glob("*.parquet")))
            fault = table_fault(frame, pd.read_csv("firms.csv"))
        elif job == "rounding":
            frame = pd.read_parquet(next((manifest.parent / "table").glob("*.parquet")))
            fault = rounding_fault(frame, pd.read_csv("persons.csv"))
        else:
            frame = pd.read_parquet(manifest.parent / "microdata")
            fault = records_fault(frame, content, RECORDS.get(job, len(frame)))
        if fault:
            print(fault, file=sys.stderr)
            return 1
        text = frame.astype(object).where(frame.notna(), "").astype(str)
        lines += ["\t".join(row) for row in text.itertuples(index=False)]
    if not lines:
        print("no release in the public area", file=sys.stderr)
        return 1
    Path("values.txt").write_text("".join(f"{line}\n" for line in sorted(lines)), encoding="utf-8")
    return 0


def records_fault(frame: pd.DataFrame, manifest: dict, records: int) -> str | None:
    """Return why microdata do not have the stated k-anonymity; None if they have it."""
    if len(frame) != records:
        return f"{records} records expected, {len(frame)} published"
    if manifest["guarantee"]["k"] != K:
        return f"k = {K} expected, the manifest says {manifest['guarantee']['k']}"
    for group in manifest["guarantee"]["groups"]:
        variables = [*group["with_region"], *group["variables"]]
        smallest = int(frame.groupby(variables, dropna=False, observed=True).size().min())
        if not group["variables"] or smallest < K:
            return f"group {group['name']}: the smallest class has {smallest} records, at least {K} expected"
    return None


def table_fault(cells: pd.DataFrame, firms: pd.DataFrame) -> str | None:
    """Return why a table is not additive or publishes a sensitive cell unchanged; None without a fault."""
    cells = cells.astype({"turnover": float})  # amounts are published as decimal numbers
    levels = firms.assign(total=TOTAL)
    keys = [["total", "total"], ["section", "total"], ["section", "branch"]]
    original = []
    for section, branch in keys:
        for region in ("total", "region"):
            groups = levels.groupby([levels[section], levels[branch], levels[region]])["turnover"]
            each = groups.agg(["sum", "count", "max"])
            original.append(each.rename_axis(["section", "branch", "region"]))
    both = pd.concat(original).join(cells.set_index(["section", "branch", "region"])["turnover"])
    if both["turnover"].isna().any():
        return f"{int(both['turnover'].isna().sum())} cells of the input are not in the table"
    sensitive = (both["count"] < K) | (both["max"] > DOMINANCE * both["sum"])
    unmoved = sensitive & ((both["turnover"] - both["sum"]).abs() < UNIT / 2)
    if not sensitive.any() or unmoved.any():
        return f"{int(unmoved.sum())} of {int(sensitive.sum())} sensitive cells are published as they were"
    for column, others in (("region", ["section", "branch"]), ("branch", ["section", "region"])):
        if not _additive(cells[cells[others[0]] != TOTAL], column, others):
            return f"the sums over {column} do not add up"
    sections = cells[cells["branch"] == TOTAL]
    return None if _additive(sections, "section", ["branch", "region"]) else "the sections do not add up"


def rounding_fault(cells: pd.DataFrame, persons: pd.DataFrame) -> str | None:
    """Return why counts are no additive multiples of the base near those of the input; None if they are."""
    variables, value = list(persons.columns), cells.columns[-1]
    inner = cells[(cells[variables] != TOTAL).all(axis=1)].set_index(variables)[value]
    original = persons.value_counts().reindex(inner.index, fill_value=0)
    if original.sum() != len(persons) or (cells[value] % BASE != 0).any():
        return "a cell is missing, or is no multiple of the base"
    if ((inner - original).abs() > 2 * BASE).any():
        return "a cell is further from its count than twice the base"
    faulty = [name for name in variables if not _additive(cells, name, _without(variables, name))]
    return f"the sums over {', '.join(faulty)} do not add up" if faulty else None


def _without(variables: list[str], name: str) -> list[str]:
    return [each for each in variables if each != name]


def _additive(cells: pd.DataFrame, column: str, others: list[str]) -> bool:
    value = cells.columns[-1]
    totals = cells[cells[column] == TOTAL].set_index(others)[value]
    sums = cells[cells[column] != TOTAL].groupby(others)[value].sum()
    return len(sums) > 0 and bool(((sums - totals.reindex(sums.index)).abs() < UNIT / 2).all())


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
