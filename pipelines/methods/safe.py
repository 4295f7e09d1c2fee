"""SAFE: the method of the German census of 2011, on the frequencies of key combinations."""

from __future__ import annotations

from microguard.pipelines.methods.microaggregation import Microaggregation


class Safe(Microaggregation):
    """Frequencies of 0 or at least k by SAFE; the strategy of every clustering is "safe"."""
