"""Methods for nominal microdata: partition and aggregate, or optimise the frequency vector directly."""

from microguard.sdc.algorithms.nominal import ChiExactParameters, Guidance, SearchParameters
from microguard.sdc.nominal.aggregation.aggregate import Aggregation, aggregate
from microguard.sdc.nominal.aggregation.joint import JointRepresentatives, joint_representatives
from microguard.sdc.nominal.anonymise import Anonymised, anonymise
from microguard.sdc.nominal.distances import Costs, Hierarchical, Nominal, Ordinal
from microguard.sdc.nominal.partitioning.partition import Partition, partition

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
