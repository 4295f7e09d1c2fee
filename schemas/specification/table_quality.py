"""Sections of `[table]`: limits on a protected table, preserved statistics, and the noise of amounts."""

from __future__ import annotations

from typing import Annotated

from microguard.schemas.specification.section import Acceptable, AutoOrCount, Bound, Section, Share, Text
from pydantic import Field


class TableQuality(Acceptable):
    """`[table.quality]`: the limits of the gate on a table; each key is optional and means no limit if it is
    missing.
    """

    max_grand_total_change: Share = 0.01
    """Adjusted tables: maximum relative change of the grand total. It applies by default, because readers
    know this number from other sources. Rounding and cell keys limit it by their base and their largest
    noise."""
    accept: dict[Text, Text] = Field(default={})
    """Exemptions by a steward from limits that apply by default: for each limit name, the reason and the
    person. A limit that is set to a looser value applies with this value, and the reason is given for it."""
    max_total_adjustment: Share | None = None
    """Maximum sum of all changes, divided by the sum of all values, including margins."""
    max_cell_adjustment: Bound | None = None
    """Maximum change of a cell that is not sensitive, relative to its value."""
    max_gap: Bound | None = None
    """Maximum excess of the changes over the proved lower bound, relative to it."""
    min_interval: Bound = 1.0
    """Minimum width of the interval that an attacker can compute for any examined sensitive cell, divided by
    the larger of its protection levels."""
    examined: AutoOrCount = "auto"
    """Number of sensitive cells whose interval is computed, drawn by the secret key; "auto" depends on the
    table's size."""
    max_determined: int = Field(default=0, ge=0)
    """Magnitudes: maximum number of examined sensitive cells whose direction can be computed from the
    published values. With cell keys, no small count may be determined by the largest noise, whatever is given
    here."""
    min_direction_error: Bound = 0.25
    """Magnitudes: minimum error of the best guess of an attacker who knows the direction of a cell, relative
    to the protected share of the guess; `table.spread` is the intended value."""
    max_direction_odds: Share = 0.9
    """Magnitudes: maximum odds of guessing the direction of a sensitive cell by the direction that most of
    them have."""
    max_posterior: Share = 0.6
    """Counts: maximum probability, for an attacker who knows the method, of any true count below the minimum
    frequency given its published value. With cell keys, also given all published values together; for
    amounts, the probability that the best guess of a sensitive amount is within its protection level. Sparse
    tables without zeros (`zeros = "omit"`) reach 0.67, because an unbiased draw publishes 2 of 3 counts of 1
    as 0."""
    max_suppressed: Share = 0.5
    """Suppression: maximum share of the cells that are suppressed."""
    max_value_suppressed: Share = 0.5
    """Suppression: maximum value of the suppressed cells, as a share of the value of all cells."""


class TablePreserve(Section):
    """`[table.preserve]`: statistics of the finest cells of each table that the protection of magnitudes
    preserves, in addition to all totals; each key is optional.
    """

    mean: Share | None = None
    """Maximum relative change of their mean, and with it of the grand total; 0 means no change."""
    slope: Annotated[Share, Field(gt=0)] | None = None
    """Maximum difference from 1 of the slope of a regression of protected on original cells. If cells change
    little, this also preserves variance and correlation; the evidence contains all of them, before and after
    protection."""


Factor = Annotated[float, Field(gt=0, le=1)]


class NoiseScaling(Section):
    """`[table.noise_scaling]`: the flex function of tau-ARGUS (`<SCALING>`) and of cellKey."""

    p_small: float = Field(gt=0, le=1)
    """Scale of the noise as a share of the largest contribution, up to the flexpoint (sigma 1)."""
    p_large: float = Field(gt=0, le=1)
    """Limit of this share for very large contributions (sigma 0); at most p_small."""
    flexpoint: float = Field(gt=0, allow_inf_nan=False)
    """Contribution above which the share decreases, in the unit of the value (x star)."""
    q: float = Field(default=3, ge=2, le=10)
    """How fast it falls."""
    epsilon: Annotated[tuple[Factor, ...], Field(strict=False, min_length=1, max_length=4)] = (1.0,)
    """Factors of the scale for the largest, second largest, ... contributor; their number is the number of
    contributors that add noise (`T(3)` of tau-ARGUS for three). The first factor is 1, and the factors do not
    increase."""
