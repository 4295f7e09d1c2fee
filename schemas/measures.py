"""Whole-file measures against the original that `publish.disclose` may name; a steward decides, by name."""

from __future__ import annotations

from typing import Literal, get_args

Disclosable = Literal[
    "information_loss",
    "chi2_per_cell",
    "max_absolute_error",
    "max_relative_error",
    "records_suppressed",
    "records_rejected",
]
DISCLOSABLE: tuple[str, ...] = get_args(Disclosable)
