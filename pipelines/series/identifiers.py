"""Detect units whose identifiers changed between updates; an audit by unit key does not recognise them.

The cause may be a tool that drops leading zeros or pads texts with blanks, another key of the pseudonyms, or
another secret of the agency. The same units would be published in second classes, and the intersection of the
two classes would disclose them. Their records show the change: records of different units agree by chance
only, and records of the same units agree more often (`publication.source_fingerprints.overlap`).
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
from microguard.pipelines.series.settings import EVENT, RETAINED, SUPERSEDED, SUPPRESSED
from microguard.schemas.errors import GateRefused
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

#: Number of distinct records that are compared: the records with the smallest hashes.
RECORDS = 4096
#: Entrants and exits share some kinds of records by chance. Staying units must have at least this fraction of
#: their expected share of these kinds.
ALSO_STAY = 0.1
#: Log probability below which it is no chance that entrants and exits have kinds of records that no staying
#: unit has, although no such kind occurs twice among entrants or among exits.
LOG_NO_TWINS = math.log(1e-2)
#: Share of the units of the smaller release above which the releases count as having the same units.
MOST = 0.5
RENAMED = (
    "New units of the input have the records of published units: their identifiers seem to have changed "
    "since the last updates (leading zeros, blanks, another key of their pseudonyms). The same units would "
    "be published in two classes, which together disclose them. Give them the identifiers they "
    'had; if they really are other units, a steward can set publish.successive = "accept".'
)
_CELL, _NEW, _ABSENT, _LEFT, _STAY = "cell", "new", "absent", "left", "stay"


def refuse_other_key(areas: Areas, release_id: str) -> None:
    """Refuse to follow a release whose unit keys were made with another secret.

    Parameters
    ----------
    release_id : str
        The last release of the series.

    Raises
    ------
    GateRefused
    """
    sketch = SourceFingerprint.read(areas.record(release_id) / FILE)
    if sketch is not None and sketch.key != key_name(areas.key()):
        raise GateRefused(
            f"The unit keys of release {release_id} were made with another secret than the current one (the "
            "file that MICROGUARD_KEY_FILE names, or the key of the evidence area): the same units would be "
            "published as new ones, in second classes, which together disclose them. Restore that key."
        )


def renamed(rows: DataFrame) -> bool:
    """Return whether some entrants are units that left earlier, judged by their records.

    Parameters
    ----------
    rows : DataFrame
        From `update_state`.
    """
    return _match_absent_units(rows) or _match_exits(rows)


def _match_exits(rows: DataFrame) -> bool:
    """Return whether entrants have the records of units that this update removes, but not of staying units.

    By chance, an entrant's record equals that of a staying unit as often as that of an exit. If no staying
    unit has such records, equal records must occur within entrants and within exits as often as between them
    (Cauchy-Schwarz).
    """
    event, current = f.col(EVENT), ~f.col(SUPERSEDED)
    groups = {
        _NEW: event == "entrant",
        _LEFT: (event == "exit") & current,
        _STAY: event.isin("unchanged", "corrected") & current,
    }
    cells = rows.groupBy(ROW).agg(*[_records(of, name) for name, of in groups.items()])
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
    """Return Chernoff's bound on the log probability of at least `hits` hits, given the expected `share`."""
    part = hits / (hits + others)
    if part <= share:
        return 0.0
    missed = (1.0 - part) * math.log((1.0 - part) / (1.0 - share)) if part < 1.0 else 0.0
    return -(hits + others) * (part * math.log(part / share) + missed)


def _match_absent_units(rows: DataFrame) -> bool:
    """Return whether entrants have records of units that left at an earlier update, given their numbers."""
    absent = f.col(EVENT).isin("exit", RETAINED, SUPPRESSED) & ~f.col(SUPERSEDED)
    new = f.col(EVENT) == "entrant"
    cell = f.col(ROW).bitwiseAND(f.lit(HASHES - 1)).alias(_CELL)
    counted = rows.where(new | absent).groupBy(cell).agg(_records(new, _NEW), _records(absent, _ABSENT))
    sizes = counted.agg(f.sum(_NEW), f.sum(_ABSENT)).first()
    if sizes is None or not all(sizes):
        return False
    lowest = counted.orderBy(_CELL).limit(RECORDS + 1).toArrow()
    cells, whole = lowest[_CELL].to_numpy()[:RECORDS], len(lowest) <= RECORDS
    of_new, of_absent = (_counts(cells, lowest[name].to_numpy()[:RECORDS], whole) for name in (_NEW, _ABSENT))
    return share_records(of_new, of_absent, (sizes[0], sizes[1]))


def updates_with_the_same_records(areas: Areas, release_id: str, earlier: Sequence[str]) -> list[str]:
    """Return the earlier updates that have the same records as a release but no unit in common.

    Records are compared on the largest set of common columns, which may lack at most one column. Equal values
    in fewer columns (an event of each shop, by region and kind) do not identify units.
    """
    sketch = SourceFingerprint.read(areas.record(release_id) / FILE)
    others = {each: SourceFingerprint.read(areas.record(each) / FILE) for each in earlier}
    return [each for each, other in others.items() if sketch and other and _same_rows(sketch, other)]


def same_records_of_other_units(areas: Areas, release_id: str, earlier: str) -> bool:
    """Return whether two releases have the same records, and most of their units differ."""
    left, right = (SourceFingerprint.read(areas.record(each) / FILE) for each in (release_id, earlier))
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
