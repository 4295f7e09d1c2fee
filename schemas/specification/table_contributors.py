"""Keys of `[table]` about contributors: holdings, requests for protection, and waivers."""

from __future__ import annotations

from typing import Annotated

from microguard.schemas.specification.section import Names, Section, Text
from pydantic import Field

Percent = Annotated[float, Field(ge=0, lt=100, allow_inf_nan=False)]


class TableContributors(Section):
    """Keys of `[table]` about contributors, for methods that use the rules of magnitudes."""

    holding: Text | None = None
    """Microdata: column of the holding (or household) to which a unit belongs. The rules treat all its
    contributions to a cell as one; with suppression, the holding also knows them all. A unit without a
    holding is its own holding; without a variable of role unit every record needs a holding."""
    request: Text | None = None
    """Microdata: column that states which contributors requested protection (tau-ARGUS `<REQUEST>`), by the
    codes of `requests`. Nobody else is protected. A cell is sensitive in three cases: its largest contributor
    requested protection and exceeds the share in `requests`; any contributor requested it and there are fewer
    contributors than the minimum frequency; or by the other rules that are given, as with `waiver`."""
    requests: dict[Text, Percent] = Field(default={})
    """For each code of `request`, the share of the cell, in percent, above which its largest contributor is
    protected, such as `{ "1" = 70, "2" = 85 }`. Other codes are no request."""
    waiver: Text | None = None
    """Microdata: column that states which contributors allow publication of their amounts, by the codes of
    `waived`. A cell is sensitive only because of contributors who did not allow it: too few contributors, one
    of whom did not; the n largest, one of whom did not; or the largest who did not, if another can estimate
    it to within p percent."""
    waived: Names = ("1", "true")
    """Codes of `waiver` that allow publication; a unit must allow it in all its records, or in none."""
