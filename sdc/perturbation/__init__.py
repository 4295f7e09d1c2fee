"""Perturbation of single variables: a record keeps its place, and its values change at random."""
