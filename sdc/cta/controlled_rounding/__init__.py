"""Controlled rounding to multiples of a base: additive, keyed, unbiased if the random walk decides alone."""
