"""Protect frequency tables: keyed unbiased draws of small counts, and least-cost adjustment of all other
cells.
"""
