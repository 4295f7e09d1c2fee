"""Risk and loss of the current specification, the limits that are exceeded, and the remedies."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from microguard.pipelines.gate.plain_names import metric_in_words
from microguard.pipelines.workbench.blocks import Estimate
from microguard.pipelines.workbench.figures import CHANGED, Preview
from microguard.pipelines.workbench.remedies import remedies
from microguard.pipelines.workbench.widgets import box, plain_number, table, text
from microguard.pipelines.workbench.workbench import Workbench
from microguard.schemas.requirements.requirement import MetricKey
from microguard.schemas.specification.model import WHOLE

MOST_COLUMNS = 20
"""Maximum number of unmodified columns with a row of their own."""


class FiguresView:
    """Figures of the last preview, and a remedy for each limit that it exceeds."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._keys: dict[str, Any] = {}

    def build(self) -> None:
        """Create the containers of the view."""
        self._state = text("p", "", "soft", role="status")
        self._figures = box("div")
        self._remedies = box("div")

    def sync(self) -> None:
        """Show the figures; unchanged elements keep the focus."""
        workbench, found = self._workbench, self._workbench.preview
        old = (
            ("The figures below describe the specification before the last change: ")
            if found is not None
            else ""
        )
        if workbench.fault:
            self._state.set_text(f"{old}{workbench.fault}")
        elif workbench.measuring:
            self._state.set_text("Measuring ...")
        else:
            self._state.set_text("" if found is None else "The figures describe the current specification.")
        self._state.classes(replace="fault" if workbench.fault else "soft")
        self._rebuild("figures", found, self._figures, lambda: self._show(found))
        lines = {} if found is None else _refusals(found)
        shown = [(head, each.get("key"), each.get("line")) for head in lines for each in lines[head]]

        def show_remedies() -> None:
            for head, failures in lines.items():
                remedies(workbench, failures, head)

        self._rebuild("remedies", shown, self._remedies, show_remedies)

    def _rebuild(self, name: str, key: Any, container: Any, build: Callable[[], None]) -> None:
        if self._keys.get(name, ...) != key:
            self._keys[name] = key
            container.clear()
            with container:
                build()

    def _show(self, found: Preview | None) -> None:
        if found is None:
            return
        content = self._workbench.text.content()
        accepted = content.get("quality", {}).get("accept", {})
        promised = "0 after protection" if found.promises_k else "not promised"
        rows = []
        for group, counts in found.counts.items():
            of = f", group {group}" if group != WHOLE else ""
            rows += [
                [
                    f"combinations of quasi-identifiers, with the region{of}",
                    f"{counts.classes:,}",
                    "exact",
                    "-",
                ],
                [
                    f"records in combinations below k = {found.k}, before protection{of}",
                    f"{counts.below_k:,}",
                    "exact",
                    promised,
                ],
                [f"unique records, before{of}", f"{counts.uniques:,}", "exact", promised],
            ]
        limits = {each.requirement.key: each for each in found.limits}
        shown, further = most_exposed(found.metrics)
        for key in shown:
            limit, estimate = limits.get(key), found.metrics[key]
            asked = "accepted" if f"max_{key.metric}" in accepted else "none"
            if limit is not None:
                verdict = limit.verdict if found.is_of_method else "not judged, see below"
                asked = f"{_percent_limit(limit.requirement)}: {verdict}"
            rows.append([_words(key, found.effort), percent(estimate.value), error_of(estimate), asked])
        if further:
            most = percent(max(found.metrics[key].value for key in further))
            exceeded = sum(key in limits and limits[key].verdict == "exceeded" for key in further)
            rows.append(
                [
                    f"share of records unique with each of {len(further):,} further columns",
                    f"≤ {most}",
                    "-",
                    f"{exceeded:,} exceeded",
                ]
            )
        table("Risk and loss", ("figure", "value", "±", "limit"), rows, numbers=(1, 2), heard=True)
        text("p", found.sample, "soft")
        for note in found.notes:
            text("p", note, "soft")


def most_exposed(metrics: Mapping[MetricKey, Any]) -> tuple[list[MetricKey], list[MetricKey]]:
    """Return the figures that have a row of their own, and those of the unmodified columns with the smallest
    shares, of which the table shows only the largest.
    """
    columns = [key for key in metrics if key.metric == "unique_published"]
    further = sorted(columns, key=lambda key: -metrics[key].value)[MOST_COLUMNS:]
    return [key for key in metrics if key not in further], further


def _words(key: MetricKey, effort: str) -> str:
    if key == CHANGED:
        return f"mean share of changed categories, effort {effort}"
    return metric_in_words(key) + (f", effort {effort}" if key.metric == "information_loss" else "")


def _percent_limit(requirement: Any) -> str:
    return (
        f"≤ {plain_number(round(100 * requirement.at_most, 10))} %"
        if requirement.at_most is not None
        else requirement.limit
    )


def percent(value: float) -> str:
    """Format a share in percent."""
    return f"{100 * value:.3g} %"


def error_of(estimate: Estimate) -> str:
    """Format the error of a figure with two digits, rounded up."""
    if not estimate.error:
        return "exact"
    digits = 1 - math.floor(math.log10(100 * estimate.error))
    return f"{math.ceil(round(100 * estimate.error * 10.0**digits, 6)) / 10.0**digits:.2g} %"


def with_error(estimate: Estimate) -> str:
    """Format a figure with its error."""
    return percent(estimate.value) + (f" ± {error_of(estimate)}" if estimate.error else "")


def _refusals(found: Preview) -> dict[str, list[dict[str, str]]]:
    """Return the limits that a run would or may refuse, by heading; only rejected records if another method
    was measured.
    """
    heads = {"exceeded": "A run would be refused", "within the error": "A run may be refused"}
    by_head: dict[str, list[dict[str, str]]] = {head: [] for head in heads.values()}
    if found.rejection is not None:
        by_head[heads["exceeded"]].append(found.rejection.as_json())
    for each in found.limits if found.is_of_method else ():
        if each.failure is not None:
            by_head[heads[each.verdict]].append(each.failure.as_json())
    return by_head
