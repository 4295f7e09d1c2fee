"""What each section of the page shows, in plain words for a reader who has not seen the measure before."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

#: Measure -> a sentence or two that stand below its heading.
PLAIN_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "risk": "How many records share each combination of the protected variables. A combination that only "
        "one person has identifies this person.",
        "individual_risk": "How likely an intruder who knows the protected variables of everybody picks the "
        "right record.",
        "household_risk": "How likely a household is found by any of its members.",
        "k_map": "How many people of the whole population, and not only of this file, share a combination.",
        "record_linkage": "An experiment: original records are matched with the nearest protected ones, and "
        "the right matches are counted.",
        "special_uniques": "Records that a few variables are enough to single out. The fewer it takes, the "
        "easier a person is found.",
        "uniques_published": "Records that can be found by columns that were not changed.",
        "homogeneity": "A class is a set of records that are equal on the protected variables. If all of "
        "them have one value of a sensitive variable, whoever finds the class learns it.",
        "changed": "How many values differ from the original, and whether a model can tell the files apart.",
        "loss": "The information loss is the share of the variation of the numbers that protection removed: "
        "0 % leaves every number as it was, 100 % leaves the mean alone.",
        "moments": "Standard deviations before and after: averaging makes numbers more alike.",
        "correlations": "Whether variables that rise together still do. 1 is always, 0 is never, -1 the "
        "opposite.",
        "estimates": "Totals, means and quantiles that readers compute, before and after.",
        "dominance": "A mean over few records gives a person away whose amount is most of the total.",
        "by_dimension": "How far counts of tables are off. Dimension 1 are counts by one variable, dimension "
        "2 by two. Chi-square adds the squared errors, each over its original count.",
        "by_region": "The same for the tables of each region.",
        "weighted_tables": "The same with each record counted by its sampling weight.",
        "cell_keys": "What the same tables would lose if they were published with noise and without records.",
        "vanished": "Cells of tables that had records and have none now.",
        "vanished_by_region": "Cells of the tables of regions that had records and have none now.",
        "certificates": "How far the result is from the best possible one, as far as that was proved.",
        "blocks": "The file was divided into blocks that were protected one by one.",
        "table": "What the table consists of. A margin is a total of other cells; a sensitive cell would "
        "give a contributor away.",
        "attacker": "What somebody can compute about a sensitive cell from everything that is published. The "
        "protection level is how far off this must be.",
        "noise": "Each count was changed by a small random number that is the same in every table.",
        "fit": "How closely the protected cells follow the original ones: 1 is exactly.",
        "changes": "How far cells were changed, relative to their value.",
        "adjustment": "How much was changed in total, and how much any protection must change at least.",
    }
)

#: Measure -> what a person can do about a risk that it shows and that the gate does not limit.
TO_DO: Mapping[str, str] = MappingProxyType(
    {
        "k_map": "set quality.max_below_k_in_population, or coarsen what the population is counted by",
        "uniques_published": "protect or leave out columns, or lower quality.max_unique_jointly",
        "homogeneity": "raise method.min_diversity, or lower quality.max_homogeneous",
        "dominance": "raise release.k, or set quality.dominance and quality.max_of_one_value",
    }
)
#: Share of records or clusters from which a risk of `TO_DO` is open although all checks passed.
OPEN_RISK = 0.05
