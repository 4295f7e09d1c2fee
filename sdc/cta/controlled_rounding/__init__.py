"""Controlled rounding to multiples of a base; the result is additive and depends on a key.

It is unbiased if the random walk alone rounds all cells.
"""
