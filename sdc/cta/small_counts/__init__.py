"""Rounding of small counts only, with totals that are the sums of their parts."""
