"""Controlled rounding to multiples of a base: additive and keyed.

It is unbiased if the random walk alone rounds all cells.
"""
