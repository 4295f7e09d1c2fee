"""Attack on cells that two tables have in common: all firms, and a part of them.

If a part of the firms includes all contributors of a cell, both tables publish the same amount of the same
firms. If the cell has two values, an attacker averages them, or solves for the factor if one rose and the
other fell. The control recognises records by the share of equal common cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from microguard.schemas.errors import ProtectionFailed

from tests.attacks import office
from tests.attacks.office import Office, business_survey, specification

pytestmark = pytest.mark.reference
#: Dimensions of both tables: the second has fewer common cells in which all firms export.
DIMENSIONS = (["a21", "size"], ["a21", "nuts1"])
LONG = (["a88", "size"], ["a88", "nuts2"])


@contextmanager
def recognised_by_share(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Weaken the office: cells are common only if half of all common cells have equal values."""
    known = office.of_the_same_records

    def by_share(cells, table, before, origin):
        identities = set(office.identities(cells, table))
        shared = [each for each in before if (each.measure, each.codes) in identities and each.original]
        equal = [each for each in known(cells, table, shared, origin) if each in shared]
        return before if 2 * len(equal) >= len(shared) else []

    with patch.context() as planted:
        planted.setattr(office, "of_the_same_records", by_share)
        yield


def common_cells(
    dimensions: list[str], key: int, *, units: bool, part_first: bool, relax: tuple[str, ...] = ()
) -> pd.DataFrame:
    """Return sensitive cells of all firms that 60 % of the firms fill alone, with both published values."""
    firms = business_survey()
    exporting = firms[np.random.default_rng(key).random(len(firms)) < 0.6]
    published, agency = [], Office(key)
    for name, frame in sorted([("all", firms), ("exporting", exporting)], reverse=part_first):
        table = {"value": "turnover", "tables": [dimensions], "relax": relax}
        chosen = specification(frame, table, units=units, name=name)
        published.append(agency.publish(frame, chosen))
    both = published[0].merge(published[1], on=dimensions, suffixes=("", "_then"))
    same = (both["members"] == both["members_then"]) & (both["true"] == both["true_then"])
    return both[same & both["sensitive"]]


def two_values(common: pd.DataFrame) -> tuple[int, int, int]:
    """Return the common cells, those with two values, and those that moved in both directions."""
    one = common["published"] == common["published_then"]
    opposite = np.sign(common["published"] - common["true"]) != np.sign(
        common["published_then"] - common["true_then"]
    )
    return len(common), int((~one).sum()), int((~one & opposite).sum())


@pytest.mark.parametrize("part_first", [False, True], ids=["table of all first", "table of a part first"])
@pytest.mark.parametrize("units", [True, False], ids=["with units", "only amounts"])
def test_table_of_a_part_of_the_units_publishes_common_cells_like_the_table_of_all_units(
    units, part_first, monkeypatch
):
    (dimensions, *_) = DIMENSIONS
    with recognised_by_share(monkeypatch):
        cells, differing, _ = two_values(common_cells(dimensions, 1, units=units, part_first=part_first))
    assert differing > 0, f"the attack on the control must succeed; {cells} common cells"
    cells, differing, _ = two_values(common_cells(dimensions, 1, units=units, part_first=part_first))
    assert (cells > 0, differing) == (True, 0)


def one_value_or_refused(dimensions: list[str], key: int, *, units: bool, part_first: bool) -> bool:
    """Return whether common cells have one value, or the second table is refused with the id of the first."""
    relax = ("capacities",)
    try:
        found = common_cells(dimensions, key, units=units, part_first=part_first, relax=relax)
    except ProtectionFailed as refused:
        return "release 0" in str(refused)
    return two_values(found)[1] == 0


@pytest.mark.long
@pytest.mark.parametrize("dimensions", [*DIMENSIONS, *LONG], ids=lambda each: "-".join(each))
@pytest.mark.parametrize("units", [True, False], ids=["with units", "only amounts"])
def test_table_of_a_part_of_the_units_never_gives_a_common_cell_a_second_value(dimensions, units):
    for key in range(5):
        for part_first in (False, True):
            assert one_value_or_refused(dimensions, key, units=units, part_first=part_first)
