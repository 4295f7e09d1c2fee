"""Microaggregation of numeric and mixed records: clusters of at least k with the least SSE.

`microaggregate` clusters an array of records, `individual_ranking` each of its variables alone. The
algorithms behind the former are listed by name in ``methods.py``; each lives in the file of its name.
"""

from microguard.sdc.microaggregation.clustering import Clustering
from microguard.sdc.microaggregation.individual_ranking import IndividualRanking, individual_ranking
from microguard.sdc.microaggregation.microaggregate import microaggregate

__all__ = ["Clustering", "IndividualRanking", "individual_ranking", "microaggregate"]
