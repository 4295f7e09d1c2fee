"""Microaggregation of numeric and mixed records: clusters of at least k records with minimal SSE.

`microaggregate` clusters records on all variables together. `individual_ranking` clusters them on each
variable separately.
"""

from typing import TYPE_CHECKING, Any

from microguard.sdc.microaggregation.clustering import Clustering
from microguard.sdc.microaggregation.microaggregate import microaggregate

if TYPE_CHECKING:
    from microguard.sdc.microaggregation.ranking import IndividualRanking, individual_ranking

__all__ = ["Clustering", "IndividualRanking", "individual_ranking", "microaggregate"]


def __getattr__(name: str) -> Any:
    """Import individual ranking, and the heuristics that only it uses, at the first access to their names."""
    if name not in ("IndividualRanking", "individual_ranking"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from microguard.sdc.microaggregation import ranking

    return getattr(ranking, name)
