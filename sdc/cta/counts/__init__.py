"""Frequency tables: keyed unbiased draws for small counts, least-cost adjustment of other cells."""
