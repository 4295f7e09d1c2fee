"""Keys of `[table]` on contributors: holdings, requests for protection, and waivers."""

from __future__ import annotations

from typing import Annotated

from microguard.schemas.specification.section import Names, Section, Text
from pydantic import Field

Percent = Annotated[float, Field(ge=0, lt=100, allow_inf_nan=False)]


class TableContributors(Section):
    """Keys of `[table]` on contributors, for methods by the rules of magnitudes."""

    holding: Text | None = None
    """Microdata: column of the holding (or household) that a unit belongs to. To the rules its contributions
    to a cell are one; with suppression it also knows them all. A unit without holding stands for itself;
    without a variable of role unit every record needs a holding."""
    request: Text | None = None
    """Microdata: column that says which contributors asked for protection (tau-ARGUS `<REQUEST>`), by the
    codes of `requests`. Nobody else is protected: a cell is sensitive if its largest contributor asked, and
    has more than the share of `requests`; or if any contributor asked and there are fewer than the minimum
    frequency; or by the rules that are named, as with `waiver`."""
    requests: dict[Text, Percent] = Field(default={})
    """Code of `request` -> share of the cell, in percent, above which its largest contributor is protected,
    such as `{ "1" = 70, "2" = 85 }`. Other codes are no request."""
    waiver: Text | None = None
    """Microdata: column that says which contributors allow publication of their amounts, by the codes of
    `waived`. A cell is sensitive only because of others: too few contributors of whom one did not allow it,
    n largest of whom one did not, or the largest who did not, whom another can estimate to p percent."""
    waived: Names = ("1", "true")
    """Codes of `waiver` that allow publication; a unit allows it in all its records, or not."""
