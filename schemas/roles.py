"""Roles and kinds of variables.

| role | what happens to the variable |
|---|---|
| unit | identifies the statistical unit; k counts units; never published |
| identifier | dropped when the file is read |
| household | identifies the household; never published |
| region | no block crosses it; published unchanged |
| quasi_identifier | protected |
| sensitive | published unchanged; a minimum diversity within clusters can be required |
| risk | disclosure risk that a swapping method reads; never published |
| weight | sampling weight, positive; published unchanged; means and losses are weighted by it |
| derived | computed from other published columns after protection, by its line in `[derived]` |
| other | published unchanged |
"""

from __future__ import annotations

from typing import Literal, get_args

Role = Literal[
    "unit",
    "identifier",
    "household",
    "region",
    "quasi_identifier",
    "sensitive",
    "risk",
    "weight",
    "derived",
    "other",
]
Kind = Literal["nominal", "ordinal", "hierarchical", "numeric"]

KINDS: tuple[str, ...] = get_args(Kind)

CATEGORIES: frozenset[str] = frozenset({"nominal", "ordinal", "hierarchical"})
"""Kinds whose values are categories; these are counted in control tables and published as they occur."""

PUBLISHED_AS_IT_IS: frozenset[str] = frozenset({"region", "sensitive", "weight", "other"})
PUBLISHED: frozenset[str] = PUBLISHED_AS_IT_IS | {"quasi_identifier", "derived"}
AT_MOST_ONE: tuple[str, ...] = ("unit", "household", "region")
NOMINAL_ONLY: tuple[str, ...] = ("unit", "identifier", "household", "region")
"""Roles whose values are names, for which the kind numeric is a mistake ("007" would become 7)."""


Disclosable = Literal[
    "information_loss",
    "chi2_per_cell",
    "max_absolute_error",
    "max_relative_error",
    "records_suppressed",
    "records_rejected",
]
