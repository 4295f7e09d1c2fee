"""Requirements on a protected table before it is published."""

from __future__ import annotations

from collections.abc import Iterator

from microguard.schemas.requirements.requirement import BROKEN, MetricKey, Requirement, accept_line
from microguard.schemas.specification.table import Table

DETERMINED = "[table.quality] max_determined = {found}"


def table_requirements(table: Table, sensitive: bool) -> tuple[Requirement, ...]:
    """Return the requirements on a table: files that contain the protected table, limits on attackers, and
    the limits of `[table.quality]`.

    `sensitive` states whether any cell is sensitive. If none is, an attacker can learn nothing.
    """
    noise = _noise if table.counts else _noise_of_amounts
    attacker = noise if table.method == "cell_key" else _attacker
    judged = () if table.method == "cell_key" else (_all_judged(),)
    return (*table_integrity(table), *judged, *(attacker(table) if sensitive else ()), *_limits(table))


def _all_judged() -> Requirement:
    """Require an interval and a level above 0 for every examined sensitive cell."""
    broken = (
        "a sensitive cell was not compared with a protection level, so its safety is unknown, and this is a "
        "fault of microguard: please report it"
    )
    return Requirement(MetricKey("cells_not_judged"), broken, at_most=0, promised=True)


def table_integrity(table: Table) -> Iterator[Requirement]:
    """Return the requirements on the written files under any guarantee: they contain the protected table."""
    altered = (
        "the staged files differ from the protected records: find the other writer or the faulty disk, and "
        "run again"
    )
    yield Requirement(MetricKey("content_as_staged"), altered, at_least=1, promised=True)
    yield Requirement(MetricKey("columns_as_declared"), altered, at_least=1, promised=True)
    if table.preserve.model_fields_set:
        yield Requirement(MetricKey("statistics_lost"), BROKEN, at_most=0, promised=True)


def suppression_limits(table: Table) -> Iterator[Requirement]:
    """Limit the information loss by suppressed cells."""
    less = (
        "more of the table is suppressed than table.quality allows: merge categories, leave out a table, "
        "raise table.effort, or accept more in [table.quality]"
    )
    for metric in ("suppressed", "value_suppressed"):
        yield Requirement(MetricKey(metric), less, at_most=getattr(table.quality, f"max_{metric}"))


def _attacker(table: Table) -> Iterator[Requirement]:
    wider = (
        "the interval of an attacker who knows capacities and margins is too narrow: raise table.capacity "
        "or the levels, free the margins, or lower table.quality.min_interval"
    )
    line = "[table.quality] min_interval = {below}"
    yield Requirement(MetricKey("attacker_interval"), wider, at_least=table.quality.min_interval, line=line)
    known = (
        "an attacker who knows capacities and margins knows a sensitive cell more closely than the "
        "published unit (the last digit, or the base) or the least level; table.quality.min_interval does "
        "not allow this: raise the levels or table.capacity, or free the margins"
    )
    yield Requirement(MetricKey("intervals_below_unit"), known, at_most=0)
    if table.levels == "exact" or (table.counts and table.lower_protection is not None):
        return
    if table.counts:
        wider = "the minimum frequency" if table.base is None else "table.base"
        mixed = (
            "the published values disclose too much about a small count: publish all zeros (table.zeros), "
            f"merge categories, raise {wider}, or accept more in table.quality.max_posterior"
        )
        line = "[table.quality] max_posterior = {above}"
        yield Requirement(MetricKey("posterior"), mixed, at_most=table.quality.max_posterior, line=line)
        return
    free = "the direction of a change follows from the other cells: free the margins or raise table.capacity"
    yield Requirement(
        MetricKey("directions_determined"), free, at_most=table.quality.max_determined, line=DETERMINED
    )
    spread = (
        "an attacker who learns the direction of a change knows the value too closely: raise table.spread"
    )
    line = "[table.quality] min_direction_error = {below}"
    yield Requirement(
        MetricKey("direction_error"), spread, at_least=table.quality.min_direction_error, line=line
    )
    even = "most changes have one direction, which can be guessed: free the margins or lower the levels"
    line = "[table.quality] max_direction_odds = {above}"
    yield Requirement(MetricKey("direction_odds"), even, at_most=table.quality.max_direction_odds, line=line)


def _noise(table: Table) -> Iterator[Requirement]:
    """Limit the disclosure by each perturbed cell alone, and by all perturbed cells together."""
    more = (
        "the published values disclose too much about a small count: merge categories, publish fewer or "
        "smaller tables, raise table.minimum_frequency or table.noise_variance (and table.largest_noise "
        "with it), or accept more in table.quality.max_posterior"
    )
    line = "[table.quality] max_posterior = {above}"
    for metric in ("posterior", "linked_posterior"):
        yield Requirement(MetricKey(metric), more, at_most=table.quality.max_posterior, line=line)
    free = (
        "the largest noise and the margins allow only one value of a small count, which is never published: "
        "raise table.largest_noise"
    )
    yield Requirement(MetricKey("counts_determined"), free, at_most=0)


def _noise_of_amounts(table: Table) -> Iterator[Requirement]:
    """Limit the probability with which a reader who knows the method can infer a sensitive amount to within
    its level.
    """
    more = (
        "the published values disclose a sensitive amount within its protection level with too high a "
        "probability: raise table.noise_scaling (p_small, p_large, flexpoint), take a p-table of larger "
        "variance and more values, give the value in a larger unit (few digits leave many combinations of "
        "draws), merge categories, publish fewer tables, or accept more in table.quality.max_posterior"
    )
    line = "[table.quality] max_posterior = {above}"
    for metric in ("within_level", "linked_within_level"):
        yield Requirement(MetricKey(metric), more, at_most=table.quality.max_posterior, line=line)


def _limits(table: Table) -> Iterator[Requirement]:
    name = "max_grand_total_change"
    limit = table.quality.default_limit(name)
    if table.method == "adjustment" and limit is not None:
        keep = (
            "the grand total, which readers know from other sources, was changed: set table.preserve.mean, "
            "raise table.capacity or table.effort, raise the limit, or have a steward accept it by name"
        )
        line = accept_line(name, "table.quality", table.quality.accept)
        yield Requirement(MetricKey("grand_total_change"), keep, at_most=limit, line=line)
    less = "raise table.effort, merge categories, or accept more in [table.quality]"
    for metric in ("total_adjustment", "cell_adjustment", "gap"):
        limit = getattr(table.quality, f"max_{metric}")
        if limit is not None:
            line = f"[table.quality] max_{metric} = {{above}}"
            yield Requirement(MetricKey(metric), less, at_most=limit, line=line)
