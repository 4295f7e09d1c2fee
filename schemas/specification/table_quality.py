"""Sections of `[table]`: limits on a protected table, preserved statistics, and the noise of amounts."""

from __future__ import annotations

from typing import Annotated

from microguard.schemas.specification.section import Acceptable, AutoOrCount, Bound, Section, Share, Text
from pydantic import Field


class TableQuality(Acceptable):
    """`[table.quality]`: the gate of a table; each key optional, none means no limit."""

    max_grand_total_change: Share = 0.01
    """Adjusted tables: change of the grand total, relative to it. Holds by default, as readers know this
    number from elsewhere. Rounding and cell keys bound it by their base and their largest noise."""
    accept: dict[Text, Text] = Field(default={})
    """A steward's exemption from a limit that holds by default: its name = the reason, and by whom. A limit
    that is set to a looser value holds at this value, and the reason is given for it."""
    max_total_adjustment: Share | None = None
    """Sum of all changes over the sum of all values, margins included."""
    max_cell_adjustment: Bound | None = None
    """Largest change of a cell that is not sensitive, relative to its value."""
    max_gap: Bound | None = None
    """How far the changes may be above the proved lower bound, relative to it."""
    min_interval: Bound = 1.0
    """Width of the interval an attacker is left with for every sensitive cell examined, over the larger of
    its protection levels."""
    examined: AutoOrCount = "auto"
    """Sensitive cells whose interval is computed, drawn by the secret key; "auto" by the table's size."""
    max_determined: int = Field(default=0, ge=0)
    """Magnitudes: sensitive cells among those examined whose direction follows from what is published. With
    cell keys no small count may follow from the largest noise, whatever is given here."""
    min_direction_error: Bound = 0.25
    """Magnitudes: how far off, at the least, the best guess of somebody who knows a cell's direction may be,
    over the protected share of the guess; `table.spread` is what is aimed at."""
    max_direction_odds: Share = 0.9
    """Magnitudes: odds of guessing the direction of a sensitive cell by the one most of them have."""
    max_posterior: Share = 0.6
    """Counts: probability, for whoever knows the method, of any true count below the minimum frequency given
    its published value; with cell keys also given all published values together, and of amounts the
    probability that the best guess of a sensitive one is within its protection level. Sparse
    tables without zeros (`zeros = "omit"`) reach 0.67: an unbiased draw publishes 2 of 3 counts of 1 as 0."""
    max_suppressed: Share = 0.5
    """Suppression: share of the cells that are suppressed."""
    max_value_suppressed: Share = 0.5
    """Suppression: value of the suppressed cells, as a share of that of all cells."""


class TablePreserve(Section):
    """`[table.preserve]`: statistics that the protection of magnitudes preserves next to all totals, of the
    finest cells of each table; each key optional."""

    mean: Share | None = None
    """How far their mean, and with it the grand total, may move, relative to it; 0: not at all."""
    slope: Annotated[Share, Field(gt=0)] | None = None
    """How far the slope of a regression of protected on original cells may be from 1. Where cells change
    little this preserves variance and correlation too; the evidence has all of them, before and after."""


Factor = Annotated[float, Field(gt=0, le=1)]


class NoiseScaling(Section):
    """`[table.noise_scaling]`: the flex function of tau-ARGUS (`<SCALING>`) and of cellKey."""

    p_small: float = Field(gt=0, le=1)
    """Scale of the noise as a share of the largest contribution, up to the flexpoint (sigma 1)."""
    p_large: float = Field(gt=0, le=1)
    """What this share falls to for ever larger contributions (sigma 0); at most p_small."""
    flexpoint: float = Field(gt=0, allow_inf_nan=False)
    """Contribution from which the share falls, in the unit of the value (x star)."""
    q: float = Field(default=3, ge=2, le=10)
    """How fast it falls."""
    epsilon: Annotated[tuple[Factor, ...], Field(strict=False, min_length=1, max_length=4)] = (1.0,)
    """Factors of the scale of the largest, second largest, ... contributor: as many contributors add noise
    (`T(3)` of tau-ARGUS for three). The first is 1, and none is above the one before it."""
