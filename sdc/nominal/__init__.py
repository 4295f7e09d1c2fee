"""Nominal microdata: partition and aggregate, or protect the frequency vector as a whole."""

from sdc.nominal.aggregation.aggregate import Aggregation, aggregate
from sdc.nominal.aggregation.joint import JointRepresentatives, joint_representatives
from sdc.nominal.anonymise import Anonymised, anonymise
from sdc.nominal.chi_exact import ChiExactParameters
from sdc.nominal.distances import Costs, Hierarchical, Nominal, Ordinal
from sdc.nominal.frequency_search.objective import SearchParameters
from sdc.nominal.partitioning.construction import Guidance
from sdc.nominal.partitioning.partition import Partition, partition

__all__ = [
    "Aggregation",
    "Anonymised",
    "ChiExactParameters",
    "Costs",
    "Guidance",
    "Hierarchical",
    "JointRepresentatives",
    "Nominal",
    "Ordinal",
    "Partition",
    "SearchParameters",
    "aggregate",
    "anonymise",
    "joint_representatives",
    "partition",
]
