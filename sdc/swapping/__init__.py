"""Targeted record swapping: units at risk exchange their geography with similar units in other areas."""

from microguard.sdc.swapping.swap import Swaps, swap

__all__ = ["Swaps", "swap"]
