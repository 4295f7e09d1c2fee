"""Compare the secret draws of sensitive cells: two draws of one cell, and one draw in two periods."""

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
    """Count sensitive cells with different values in two releases; cells match by units or codes."""
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
    """Number of sensitive cells whose value follows, and number of compared cells.

    Attributes
    ----------
    periods : mapping of period to Rate
        Each table with the earlier one that is most like it.
    pairs : mapping of ids of two releases to Rate
        Each table with each earlier one, so that no other pair hides it.
    """

    periods: dict[str, Rate]
    pairs: dict[str, Rate]


def shared_draws(tables: Sequence[Table]) -> SharedDraws:
    """Count sensitive cells whose true value follows from the values of the period before by the rule of
    three.

    Whoever knows last period's true value, and both published ones, estimates this period's. The estimate is
    right if the factor is the same. Tables of several populations can publish a cell. A period therefore
    counts each of its tables with one earlier table: the one that shares most cells, or among equals the one
    whose true values are nearest.
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
    """Return the sensitive cells of all tables of amounts that were moved."""
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
