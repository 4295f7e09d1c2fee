"""Compare the secret draws of sensitive cells: two of one cell, and one that two periods share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from microguard.pipelines.audit.joint.build import Table
from microguard.pipelines.audit.joint.intervals import KNOWN_WITHIN
from microguard.pipelines.audit.joint.system import System


def repeated_draws(system: System) -> int:
    """Count sensitive cells that two releases publish with different values, under whatever codes."""
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


def shared_draws(tables: Sequence[Table]) -> dict[str, tuple[int, int]]:
    """Count sensitive cells whose true value follows from their last period's by the rule of three.

    Whoever knows last period's true value, and both published ones, estimates this period's. The estimate is
    right if the factor is the same. A cell that tables of several populations publish is compared with each
    of its values of the last period.

    Returns
    -------
    mapping of period to (int, int)
        Cells whose value follows, and cells that could be compared.
    """
    frame = _sensitive(tables)
    found: dict[str, tuple[int, int]] = {}
    before = frame.iloc[:0]
    for period, now in frame.groupby("period", sort=True):
        pairs = now.merge(before, on="label", suffixes=("", "_before"))
        pairs = pairs[pairs["truth_before"] != pairs["truth"]]
        estimate = pairs["shown"] * pairs["truth_before"] / pairs["shown_before"]
        right = (estimate - pairs["truth"]).abs() <= KNOWN_WITHIN * pairs["truth"]
        if len(pairs):
            found[str(period)] = int(right.sum()), len(pairs)
        before = pd.concat([before[~before["label"].isin(now["label"])], now])
    return found


def _sensitive(tables: Sequence[Table]) -> pd.DataFrame:
    """Return the sensitive cells of all tables of amounts that were moved, each value once."""
    parts = [pd.DataFrame({"period": [], "label": [], "shown": [], "truth": []}).astype(
        {"period": str, "label": str})]  # fmt: skip
    for table in tables:
        cells, layout = table.cells, table.release.table
        assert layout is not None
        if layout.counts:
            continue
        chosen = cells.sensitive & (cells.shown > 0) & (cells.truth > 0) & (cells.shown != cells.truth)
        columns = {name: getattr(cells, name)[chosen] for name in ("shown", "truth")}
        parts.append(pd.DataFrame({"period": table.release.period, "label": cells.labels[chosen], **columns}))
    return pd.concat(parts, ignore_index=True).drop_duplicates(["period", "label", "shown", "truth"])
