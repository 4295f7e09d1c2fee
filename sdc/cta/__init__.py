"""Controlled tabular adjustment (Cox 2005): move sensitive cells to safe values in an additive table."""

from microguard.sdc.cta.adjust import adjust
from microguard.sdc.cta.result import Adjustment
from microguard.sdc.cta.table.cell_table import CellTable
from microguard.sdc.cta.table.quality import Quality, kept_mean, kept_slope

__all__ = ["Adjustment", "CellTable", "Quality", "adjust", "kept_mean", "kept_slope"]
