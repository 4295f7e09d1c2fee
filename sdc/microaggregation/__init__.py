"""Microaggregation of numeric and mixed records: clusters of at least k records with minimal SSE.

`microaggregate` clusters records on all variables together. `individual_ranking` clusters them on each
variable separately.
"""

from microguard.sdc.microaggregation.clustering import Clustering
from microguard.sdc.microaggregation.individual_ranking import IndividualRanking, individual_ranking
from microguard.sdc.microaggregation.microaggregate import microaggregate

__all__ = ["Clustering", "IndividualRanking", "individual_ranking", "microaggregate"]
