"""Nominal microdata: partition and aggregate, or protect the frequency vector as a whole."""

from sdc.nominal.aggregation import Aggregation, aggregate
from sdc.nominal.anonymise import Anonymised, anonymise
from sdc.nominal.objective import SearchParameters
from sdc.nominal.partition import Partition, partition

__all__ = [
    "Aggregation",
    "Anonymised",
    "Partition",
    "SearchParameters",
    "aggregate",
    "anonymise",
    "partition",
]
