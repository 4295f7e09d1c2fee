"""Compare the secret draws of sensitive cells: two of one cell, and one that two periods share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from microguard.pipelines.audit.joint.build import Table
from microguard.pipelines.audit.joint.intervals import KNOWN_WITHIN


def repeated_draws(tables: Sequence[Table]) -> int:
    """Count sensitive cells of one period that two releases publish with different values."""
    frame = _sensitive(tables)
    if not len(frame):
        return 0
    values = frame.groupby(["period", "label"])["shown"].agg(["min", "max"])
    return int((values["max"] - values["min"] > 1e-9 * (1 + values["max"].abs())).sum())


def shared_draws(tables: Sequence[Table]) -> tuple[int, int]:
    """Count sensitive cells whose true value follows from their last period's by the rule of three.

    Whoever knows last period's true value, and both published ones, estimates this period's. The estimate is
    right if the factor is the same.

    Returns
    -------
    found, comparable : int
    """
    frame = _sensitive(tables)
    frame = frame[(frame["truth"] > 0) & (frame["shown"] > 0) & (frame["shown"] != frame["truth"])]
    frame = frame[~frame["counts"]].drop_duplicates(["period", "label"])
    if not len(frame) or frame["period"].nunique() < 2:
        return 0, 0
    frame = frame.sort_values("period", kind="stable")
    before = frame.groupby("label")[["truth", "shown"]].shift()
    estimate = frame["shown"] * before["truth"] / before["shown"]
    changed = (before["truth"] != frame["truth"]) & before["truth"].notna()
    right = (estimate - frame["truth"]).abs() <= KNOWN_WITHIN * frame["truth"]
    return int((right & changed).sum()), int(changed.sum())


def _sensitive(tables: Sequence[Table]) -> pd.DataFrame:
    """Return the published sensitive cells of all tables."""
    parts = []
    for table in tables:
        cells, layout = table.cells, table.release.table
        assert layout is not None
        chosen = cells.sensitive & np.isfinite(cells.shown)
        parts.append(
            pd.DataFrame(
                {
                    "period": table.release.period,
                    "label": cells.labels[chosen],
                    "shown": cells.shown[chosen],
                    "truth": cells.truth[chosen],
                    "counts": layout.counts,
                }
            )
        )
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(
        columns=["period", "label", "shown", "truth", "counts"])  # fmt: skip
