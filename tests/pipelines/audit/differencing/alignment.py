"""Align the records of several releases from their public files alone, as an attacker with copies can.

1. Records are matched by their unmodified columns, if no release has this combination of values twice.
2. The remaining records of classes with equal region, values and size are treated as the same units.
3. Every other record is a separate unit in each release.

Matches by chance count as matches.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from microguard.pipelines.audit.differencing.classes import Classes
from microguard.pipelines.audit.differencing.mean_weights import capped_weights
from microguard.pipelines.audit.differencing.published import PublishedRecords, codes


def align_releases(releases: Sequence[PublishedRecords]) -> list[Classes]:
    """Return the classes of all clusterings, with units numbered by the alignment over all releases.

    Parameters
    ----------
    releases : sequence of PublishedRecords
        Releases with the same columns.
    """
    columns = list(releases[0].records.columns)
    pooled = pd.concat([release.records[columns] for release in releases], ignore_index=True)
    owner = np.repeat(np.arange(len(releases)), [len(release.records) for release in releases])
    region = codes(pooled, releases[0].region)
    unit = _units(pooled, owner, region, releases[0])
    sensitive = {name: codes(pooled, [name]) for name in releases[0].with_role("sensitive")}
    classes = []
    for position, release in enumerate(releases):
        rows = np.flatnonzero(owner == position)
        frame = pooled.iloc[rows]
        for variables in release.groups:
            of = codes(frame, [*release.region, *variables])
            _, first = np.unique(of, return_index=True)
            means = [name for name in release.means if name in variables]
            classes.append(
                Classes(
                    release.release_id,
                    release.k,
                    variables,
                    unit[rows],
                    of,
                    region[rows][first],
                    {name: frame[name].to_numpy(np.float64, na_value=np.nan)[first] for name in means},
                    release.rounding,
                    {name: values[rows] for name, values in sensitive.items()},
                    weight=np.ones(len(rows))
                    if release.weighted_by is None
                    else capped_weights(frame[release.weighted_by].to_numpy(np.float64), of, release.k),
                )
            )
    return classes


def _units(
    pooled: pd.DataFrame, owner: np.ndarray, region: np.ndarray, release: PublishedRecords
) -> np.ndarray:
    protected = list(dict.fromkeys(name for group in release.groups for name in group))
    of_class = codes(pooled, [*release.region, *protected])
    unmodified = [
        each["name"]
        for each in release.manifest["columns"]
        if not each["protected"] and each["name"] not in release.region
    ]
    content = codes(pooled, [*release.region, *unmodified]) if unmodified else region
    rows = pd.DataFrame({"owner": owner, "class": of_class, "content": content})
    often = rows.groupby(["owner", "content"])["class"].transform("size")
    most = often.groupby(rows["content"]).transform("max").to_numpy()
    followed = (most == 1) if unmodified else np.zeros(len(rows), bool)
    rows["size"] = rows.groupby(["owner", "class"])["content"].transform("size")
    unit = np.where(followed, content, -1)
    unfollowed = rows[~followed]
    if len(unfollowed):
        rank = unfollowed.groupby(["owner", "class"]).cumcount()
        keys = np.column_stack([unfollowed["class"], unfollowed["size"], rank])
        _, place = np.unique(keys, axis=0, return_inverse=True)
        unit[~followed] = place.reshape(-1) + int(content.max()) + 1
    return np.asarray(pd.factorize(unit)[0], np.int64)
