"""Requirements in plain words, used on the page and in names of expectations."""

from __future__ import annotations

from microguard.schemas.requirements.requirement import MetricKey, Requirement

_WORDS = {
    "present": "column {variable} exists",
    "type_fits": "column {variable} has a type that fits its role",
    "records_kept": "records that are kept",
    "records_rejected": "records that are rejected",
    "missing": "records without {variable}",
    "not_finite": "records with no finite {variable}",
    "not_positive": "records with no positive {variable}",
    "repeated": "records whose {variable} occurs more than once",
    "domain": "categories of {variable}",
    "smallest_region": "units of the smallest region",
    "patterns_below_k": "rare missing patterns with {variable}",
    "complete_below_k": "regions with few complete units",
    "smallest_class": "records that have any combination of {variable}",
    "fewest_showing": "records compatible with the values of any record of {variable}",
    "fewest_households": "units that have any combination of {variable}",
    "fewest_values": "distinct values of {variable} in any class, counted on the files",
    "records_published": "records in the files",
    "values_not_allowed": "published values that the method does not allow",
    "status_wrong": "cells whose status contradicts their value",
    "joint_below_k": "units with a history over all releases that fewer than k units share",
    "joint_determined_values": "values that can be computed from the means of all releases",
    "joint_determined_sums": "sums over fewer than k records that can be computed from all releases",
    "joint_close_totals": "pairs of totals that differ by fewer than k records",
    "joint_one_value": "units with one possible value of a sensitive variable",
    "joint_cells": "cells of protected tables whose value can be computed",
    "joint_not_compared": "releases that cannot be compared with",
    "cells_unprotected": "sensitive cells without their protection",
    "cells_astray": "cells whose value the method does not allow",
    "lines_open": "totals that differ from the sum of their parts",
    "cells_by_subtraction": "suppressed cells whose value can be computed from published sums",
    "intervals_too_narrow": "sensitive cells whose interval is too narrow for the attacker {variable}",
    "suppressed": "share of the cells that are suppressed",
    "value_suppressed": "share of the value that is suppressed",
    "records_unaccounted": "original records that are neither published, suppressed nor held back",
    "content_as_staged": "the files contain the protected values",
    "columns_as_declared": "the files have the declared columns and types",
    "others_as_read": "columns published unmodified contain the input's values",
    "left_unchanged": "perturbed variables without a change in any compared record: {variable}",
    "information_loss": "information loss",
    "chi2_per_cell": "chi-square per cell of the control tables",
    "unique_published": "share of records unique with {variable}",
    "unique_with_number": "share of records unique with the number or date {variable}",
    "own_text": "share of records with a text of their own in {variable}",
    "unique_jointly": "share of records unique with all published columns",
    "homogeneous": "share of records whose class determines {variable}",
    "determined": "protected variables that {variable} determines",
    "contradicted": "changed variables that determine the unmodified {variable}",
    "smallest_diversity": "distinct values of {variable} in any class",
    "dominated_clusters": "clusters that few contributors to {variable} dominate",
    "known_contributors": (
        "clusters whose mean discloses the largest {variable} to the second largest contributor"
    ),
    "of_one_value": "share of records in clusters of one {variable}",
    "grand_total_change": "change of the grand total",
    "total_adjustment": "sum of all changes over the sum of all values",
    "cell_adjustment": "largest change of a cell that is not sensitive",
    "attacker_interval": "narrowest interval left to an attacker, in protection levels",
    "intervals_below_unit": "intervals that are narrower than the last published digit",
    "directions_determined": "sensitive cells whose direction can be inferred from the table",
    "direction_error": "error of the best guess of an attacker who knows a direction",
    "direction_odds": "odds of guessing the direction of a sensitive cell correctly",
    "gap": "gap to the proved lower bound",
    "t": "distance of {variable} in a class from the whole file",
    "entropy_diversity": "effective number of values of {variable} in a class",
    "posterior": "probability of the likeliest small count given its published value",
    "linked_posterior": "probability of the likeliest small count given all that is published",
    "within_level": "probability of estimating a sensitive amount within its level, from this cell alone",
    "linked_within_level": "probability of estimating a sensitive amount within its level, from all amounts",
    "counts_determined": "small counts that can be inferred from the largest noise",
    "below_k_in_population": "share of records whose combination fewer than k of the population have",
}
"""Phrase for each metric; a metric without an entry is shown by its name."""


def metric_in_words(key: MetricKey) -> str:
    """Return the metric as a phrase, such as "share of the cells that are suppressed"."""
    spelled = key.metric.replace("_", " ") + (" of {variable}" if key.variable else "")
    words = _WORDS.get(key.metric, spelled).replace("{variable}", key.variable)
    return words + (f" in tables of dimension {key.dimension}" if key.dimension else "")


def plain_name(requirement: Requirement) -> str:
    """Return the requirement as a phrase, such as "share of the cells that are suppressed: at most 0.5"."""
    words = metric_in_words(requirement.key)
    limits = [
        f"{word} {limit:g}"
        for word, limit in (("at least", requirement.at_least), ("at most", requirement.at_most))
        if limit is not None
    ]
    return f"{words}: {' and '.join(limits)}" if limits else words
