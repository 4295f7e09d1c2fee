"""Targeted record swapping: units at risk exchange their geography with similar units elsewhere."""

from microguard.sdc.swapping.swap import Swaps, swap

__all__ = ["Swaps", "swap"]
