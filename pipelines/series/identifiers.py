"""Units that are called otherwise than on the nights before: no audit by unit key knows them again.

A tool that drops leading zeros or pads texts with blanks, another key of the pseudonyms, another secret of
the agency: the same units are published in second classes, and whoever lays the two beside each other finds
them where these meet. Their records betray them: those of new units and of units of before were drawn apart
where they differ by chance, and are the same where they differ by less (`source_fingerprints.overlap`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from microguard.pipelines.intake.unit_key import ROW
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.key import key_name
from microguard.pipelines.publication.source_fingerprints.overlap import (
    HASHES,
    LOG_CHANCE,
    CellCounts,
    share_records,
)
from microguard.pipelines.publication.source_fingerprints.source_fingerprint import (
    FILE,
    SourceFingerprint,
    same_records,
)
from microguard.pipelines.publication.source_fingerprints.unit_fingerprint import similarity
from microguard.pipelines.series.settings import EVENT, GHOST, GONE, SUPERSEDED
from microguard.schemas.errors import GateRefused
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

#: Distinct records that are compared: of more, those whose hashes are smallest.
RECORDS = 4096
#: Of the records that comers and leavers have in common by chance, units that stay have at least this part of
#: what their number lets expect.
ALSO_STAY = 0.1
#: As a logarithm, the chance that comers and leavers are of kinds that nobody who stays is of, and that none
#: is met twice among either.
LOG_NO_TWINS = math.log(1e-2)
#: Of the units of the smaller night, what makes most of them.
MOST = 0.5
RENAMED = (
    "Units that come tonight have the records of others, published before: they seem to have other "
    "identifiers than on the nights before (leading zeros, blanks, another key of their pseudonyms). "
    "Published so, the same units would stand in two classes, which together give them away. Give them their "
    'identifiers of before; where they really are others, a steward says so by publish.successive = "accept".'
)
_CELL, _NEW, _AWAY, _LEFT, _STAY = "cell", "new", "away", "left", "stay"


def refuse_other_key(areas: Areas, night: str) -> None:
    """Refuse to go on after a night whose units were named by another secret.

    Parameters
    ----------
    night : str
        Id of the release before tonight's.

    Raises
    ------
    GateRefused
    """
    sketch = SourceFingerprint.read(areas.record(night) / FILE)
    if sketch is not None and sketch.key != key_name(areas.key()):
        raise GateRefused(
            f"The units of release {night} were named by another secret than tonight's (of the file that "
            "MICROGUARD_KEY_FILE names, or of the evidence area): the same units would be published as new "
            "ones, in second classes, which together give them away. Restore the key of then."
        )


def renamed(beside: DataFrame) -> bool:
    """Whether tonight's comers, or some of them, are units that are away, by their records.

    Parameters
    ----------
    beside : DataFrame
        From `night`.
    """
    return _as_many(beside) or _of_tonight(beside)


def _of_tonight(beside: DataFrame) -> bool:
    """Whether comers have records of units that leave tonight, and of nobody who stays.

    By chance a comer's record is as soon one of a unit that stays. Where comers and leavers are of kinds that
    nobody else is of, records are met within both as soon as between them (Cauchy and Schwarz).
    """
    event, current = f.col(EVENT), ~f.col(SUPERSEDED)
    groups = {
        _NEW: event == "comer",
        _LEFT: (event == "left") & current,
        _STAY: event.isin("unchanged", "corrected") & current,
    }
    cells = beside.groupBy(ROW).agg(*[_records(of, name) for name, of in groups.items()])
    new, left, stay = (f.col(name) for name in groups)
    twins = sum((each * (each - 1) / 2 for each in (new, left)), f.lit(0))
    row = cells.agg(
        f.count_if((new > 0) & (left > 0) & (stay == 0)).alias("again"),
        f.count_if((new > 0) & (stay > 0)).alias("chance"),
        f.coalesce(f.sum(f.when(stay == 0, twins)), f.lit(0)).alias("twins"),
        f.sum(left).alias(_LEFT),
        f.sum(stay).alias(_STAY),
    ).first()
    assert row is not None
    if not row["again"]:
        return False
    share = row[_LEFT] / (row[_LEFT] + ALSO_STAY * row[_STAY])
    by_chance = _log_tail(row["again"], row["chance"], share)
    return by_chance <= LOG_CHANCE and _log_tail(row["again"], row["twins"], 0.5) <= LOG_NO_TWINS


def _log_tail(hits: int, others: float, share: float) -> float:
    """Chernoff's bound on the chance of so many hits among hits and others, where `share` are expected."""
    part = hits / (hits + others)
    if part <= share:
        return 0.0
    missed = (1.0 - part) * math.log((1.0 - part) / (1.0 - share)) if part < 1.0 else 0.0
    return -(hits + others) * (part * math.log(part / share) + missed)


def _as_many(beside: DataFrame) -> bool:
    """Whether records of comers are those of units that are away, whenever they left, by their numbers."""
    new, away = f.col(EVENT) == "comer", f.col(EVENT).isin("left", GHOST, GONE) & ~f.col(SUPERSEDED)
    cell = f.col(ROW).bitwiseAND(f.lit(HASHES - 1)).alias(_CELL)
    counted = beside.where(new | away).groupBy(cell).agg(_records(new, _NEW), _records(away, _AWAY))
    sizes = counted.agg(f.sum(_NEW), f.sum(_AWAY)).first()
    if sizes is None or not all(sizes):
        return False
    rows = counted.orderBy(_CELL).limit(RECORDS + 1).toArrow()
    cells, whole = rows[_CELL].to_numpy()[:RECORDS], len(rows) <= RECORDS
    of_new, of_away = (_counts(cells, rows[name].to_numpy()[:RECORDS], whole) for name in (_NEW, _AWAY))
    return share_records(of_new, of_away, (sizes[0], sizes[1]))


def nights_of_the_same_records(areas: Areas, tonight: str, nights: Sequence[str]) -> list[str]:
    """Those of the nights, which share no unit with tonight's, whose records are tonight's all the same.

    Records are compared by the most columns that both nights know, all of them but one at least: what events
    have in common otherwise (one of each shop, by region and kind) tells nothing of their units.
    """
    sketch = SourceFingerprint.read(areas.record(tonight) / FILE)
    others = {night: SourceFingerprint.read(areas.record(night) / FILE) for night in nights}
    return [night for night, other in others.items() if sketch and other and _same_rows(sketch, other)]


def of_other_units(areas: Areas, tonight: str, night: str) -> bool:
    """Whether tonight's records are another night's, while the units of most of them are not."""
    left, right = (SourceFingerprint.read(areas.record(each) / FILE) for each in (tonight, night))
    if left is None or right is None or left.units is None or right.units is None:
        return False
    others = similarity(left.units, right.units).share < MOST
    return others and same_records(replace(left, units=None), replace(right, units=None))


def _same_rows(left: SourceFingerprint, right: SourceFingerprint) -> bool:
    common = [subset for subset in left.cells if subset in right.cells]
    widest = max(map(len, common), default=0)
    if widest < min(max(map(len, each.cells)) for each in (left, right)) - 1:
        return False
    sizes = (left.records, right.records)
    return any(
        share_records(left.cells[subset], right.cells[subset], sizes)
        for subset in common
        if len(subset) == widest
    )


def _records(of: Column, name: str) -> Column:
    return f.count_if(of).alias(name)


def _counts(cells: np.ndarray, records: np.ndarray, whole: bool) -> CellCounts:
    return CellCounts(cells[records > 0], records[records > 0], whole)
