"""Small count rounding: only small counts are rounded, and totals are the sums of their parts."""
