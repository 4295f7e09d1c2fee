"""Local suppression: replace single values by missing values until every key combination is k-anonymous."""

from microguard.sdc.local_suppression.suppress import LocalSuppression, suppress

__all__ = ["LocalSuppression", "suppress"]
