"""Default limits on disclosure that a specification sets to a looser value.

A steward accepts the violation of a limit by name, with a reason (`quality.accept`): without a value, or up
to a looser value. A looser value alone needs no reason, so the report and the ledger state it together with
the accepted limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from microguard.schemas.specification.consistency import HELD_BY_DEFAULT
from microguard.schemas.specification.sections import Quality
from microguard.schemas.specification.table_quality import TableQuality

OF_TABLES = (
    "max_grand_total_change",
    "min_interval",
    "max_determined",
    "min_direction_error",
    "max_direction_odds",
    "max_posterior",
)
"""Limits of `[table.quality]` on what an attacker learns, and on the change of the total that readers
know."""


def loosened(quality: Mapping[str, Any], *, of_table: bool) -> dict[str, str]:
    """Return the limits that are looser than the default: the text to state for each, and the reason if it
    was accepted.

    Parameters
    ----------
    quality : mapping
        The section `[quality]`, or `[table.quality]`.
    """
    names, section = (OF_TABLES, TableQuality) if of_table else (HELD_BY_DEFAULT, Quality)
    found, accepted = {}, quality.get("accept") or {}
    for name in names:
        default = section.model_fields[name].default
        value = quality.get(name)
        # evidence of earlier versions does not contain all limits
        value = default if value is None else value
        looser = value < default if name.startswith("min_") else value > default
        if looser:
            reason = f": {accepted[name]}" if name in accepted else ", without a reason"
            found[name] = f"{value:g} instead of {default:g}{reason}"
    return found
