"""Perturbation of single variables: records keep their positions, and their values change at random."""
