"""Comparison of the secret draws of sensitive cells: two draws for one cell, or one draw used in two
periods.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from microguard.pipelines.audit.joint.build import Table
from microguard.pipelines.audit.joint.intervals import KNOWN_WITHIN
from microguard.pipelines.audit.joint.limits import Rate
from microguard.pipelines.audit.joint.system import System


def repeated_draws(system: System) -> int:
    """Count the sensitive cells that have different values in two releases; cells are matched by units or
    codes.
    """
    chosen = system.said_secret & np.isfinite(system.said_shown)
    said = pd.DataFrame(
        {
            "cell": system.said[chosen],
            "release": system.said_release[chosen],
            "shown": system.said_shown[chosen],
        }
    ).sort_values(["cell", "shown"], kind="stable")
    step = said.groupby("cell")["shown"].diff()
    said["value"] = (step > 1e-9 * (1 + said["shown"].abs())).groupby(said["cell"]).cumsum()
    of_release = said.groupby(["cell", "release"])["value"].nunique().groupby("cell").max()
    return int((said.groupby("cell")["value"].nunique() > of_release).sum())


@dataclass(frozen=True)
class SharedDraws:
    """Number of sensitive cells whose true value can be inferred, and number of compared cells.

    Attributes
    ----------
    periods : mapping of period to Rate
        Counts for each table with the earlier table that is most similar.
    pairs : mapping of ids of two releases to Rate
        Counts for each table with each earlier table, so that no other pair hides a disclosure.
    """

    periods: dict[str, Rate]
    pairs: dict[str, Rate]


def shared_draws(tables: Sequence[Table]) -> SharedDraws:
    """Count the sensitive cells whose true value can be computed from the values of the previous period by
    the rule of three.

    An attacker who knows last period's true value and both published values can estimate this period's true
    value. The estimate is right if both periods used the same factor. Tables of several populations can
    publish a cell. Each table is therefore compared with one earlier table: the one that shares most cells
    or, in a tie, the one whose true values are nearest.
    """
    frame = _sensitive(tables)
    found = SharedDraws({}, {})
    before = frame.iloc[:0]
    for period, now in frame.groupby("period", sort=True):
        pairs = now.merge(before, on="label", suffixes=("", "_before"))
        pairs = pairs[pairs["truth_before"] != pairs["truth"]].copy()
        estimate = pairs["shown"] * pairs["truth_before"] / pairs["shown_before"]
        pairs["right"] = (estimate - pairs["truth"]).abs() <= KNOWN_WITHIN * pairs["truth"]
        pairs["apart"] = np.abs(np.log(pairs["truth_before"] / pairs["truth"]))
        rows = pairs.groupby(["table", "table_before"], as_index=False).agg(
            right=("right", "sum"), of=("right", "size"), apart=("apart", "median")
        )
        columns = (rows[name].tolist() for name in ("table", "table_before", "right", "of"))
        for table, earlier, right, of in zip(*columns, strict=True):
            found.pairs[f"{table} after {earlier}"] = right, of
        best = rows.sort_values(["of", "apart", "table_before"], ascending=[False, True, True])
        chosen = pairs.merge(best.drop_duplicates("table")[["table", "table_before"]])
        chosen = chosen.drop_duplicates(["label", "shown", "truth", "shown_before", "truth_before"])
        if len(chosen):
            found.periods[str(period)] = int(chosen["right"].sum()), len(chosen)
        before = pd.concat([before[~before["label"].isin(now["label"])], now])
    return found


def _sensitive(tables: Sequence[Table]) -> pd.DataFrame:
    """Return the sensitive cells in all tables of amounts whose values were changed."""
    texts = {"period": str, "table": str, "label": str}
    parts = [pd.DataFrame({name: [] for name in (*texts, "shown", "truth")}).astype(texts)]
    for table in tables:
        cells, layout = table.cells, table.release.table
        assert layout is not None
        if layout.counts:
            continue
        chosen = cells.sensitive & (cells.shown > 0) & (cells.truth > 0) & (cells.shown != cells.truth)
        columns = {name: getattr(cells, name)[chosen] for name in ("shown", "truth")}
        about = {"period": table.release.period, "table": table.release.release_id}
        parts.append(pd.DataFrame({**about, "label": cells.labels[chosen], **columns}))
    return pd.concat(parts, ignore_index=True).drop_duplicates()
