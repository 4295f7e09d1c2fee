"""Frequency tables: small counts go up or down by a keyed draw, the rest follows at least cost."""
