"""Frequency tables: small counts are rounded by a keyed draw, other cells adjusted at least cost."""
