"""Controlled tabular adjustment (Cox 2005): sensitive cells move to safe values, the table still adds up."""

from microguard.sdc.cta.adjust import adjust
from microguard.sdc.cta.result import Adjustment
from microguard.sdc.cta.table.cell_table import CellTable
from microguard.sdc.cta.table.quality import Quality, kept_mean, kept_slope

__all__ = ["Adjustment", "CellTable", "Quality", "adjust", "kept_mean", "kept_slope"]
