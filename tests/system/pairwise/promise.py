"""Check the guarantees of a specification on a release with plain pandas, without code of the methods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from tests.system.pairwise.jobs import PairwiseJob

#: Positive numbers count as equal if they differ by less than this share of their size and of their range.
CLOSE = 0.01


def broken(job: PairwiseJob, release: pd.DataFrame, accepted: pd.DataFrame, key: str | None) -> Iterator[str]:
    """Yield a sentence for each guarantee that a release violates.

    Parameters
    ----------
    release : DataFrame
        Published records.
    accepted : DataFrame
        Original records that were neither rejected nor suppressed, with the column that k counts.
    key : str or None
        Column of both with a distinct value in every record, which identifies it.
    """
    if {"name", "unit", "household"} & set(release.columns):
        yield "an identifier is published"
    counted = None if key is None else job.counted
    if counted is not None:
        release = release.merge(accepted[[key, counted]], on=key, how="left")
    for group in job.groups:
        keys = [*filter(None, [job.region]), *group]
        yield from broken_classes(release, keys, job.k, counted, job.diverse)
    if job.row["series"] == "register":  # units may be pending, and retained until their class is suppressed
        if key is None:
            return
        release, accepted = (
            one[one[key].isin(other[key])] for one, other in ((release, accepted), (accepted, release))
        )
    if len(release) != len(accepted):
        yield f"{len(accepted)} records were accepted and {len(release)} published"
        return
    untouched = [name for name in release if name not in (*job.quasi_identifiers, counted)]
    order = untouched if key is None else [key]
    before = accepted.sort_values(order, ignore_index=True, key=_as_text)
    after = release.sort_values(order, ignore_index=True, key=_as_text)
    yield from (
        f"the column {name} is not what it was" for name in untouched if not _alike(before[name], after[name])
    )


def broken_classes(
    release: pd.DataFrame,
    keys: Sequence[str],
    k: int,
    counted: str | None = None,
    diverse: str | None = None,
) -> Iterator[str]:
    """Yield a sentence for each guarantee that the classes of one clustering violate.

    Parameters
    ----------
    keys : sequence of str
        The region, if any, and the quasi-identifiers that are protected together.
    counted : str, optional
        The column whose values k counts; records by default.
    diverse : str, optional
        A sensitive column of which each class has two values or more.
    """
    classes, of = (
        release.groupby(list(keys), dropna=False, observed=True),
        f"combination of {', '.join(keys)}",
    )
    smallest = classes.size().min() if counted is None else classes[counted].nunique().min()
    if smallest < k:
        yield f"{smallest} {counted or 'record'}s share a {of}"
    if diverse is None:
        return
    if release[diverse].dtype.kind == "f":
        apart = classes[diverse].max() - classes[diverse].min()
        of_range, of_value = CLOSE * np.ptp(release[diverse]), CLOSE * classes[diverse].max()
        if ((apart < of_range) & (apart <= of_value)).any():
            yield f"the values of {diverse} are close to each other in a {of}"
    elif classes[diverse].nunique().min() < 2:
        yield f"{diverse} has one value in a {of}"


def _as_text(column: pd.Series) -> pd.Series:
    return column.astype(str)


def _alike(before: pd.Series, after: pd.Series) -> bool:
    if before.dtype.kind == after.dtype.kind == "f":
        return bool(((before == after) | (before.isna() & after.isna())).all())
    if before.dtype.kind == after.dtype.kind == "M":
        before, after = (
            before.dt.as_unit("us").dt.tz_localize(None),
            after.dt.as_unit("us").dt.tz_localize(None),
        )
    return before.astype(str).tolist() == after.astype(str).tolist()
