"""Microaggregation of numeric and mixed records: clusters of at least k with the least SSE.

`microaggregate` clusters an array of records. The algorithms behind it are listed by name in
``algorithms.py``; each lives in the file of its name.
"""

from sdc.microaggregation.clustering import Clustering
from sdc.microaggregation.solve import microaggregate

__all__ = ["Clustering", "microaggregate"]
