"""Metric with a limit, used by gates, guarantees and audits."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple

from microguard.schemas.errors import Failure

#: Remedy if a guarantee is violated.
BROKEN = "the protection is broken; this is a fault of microguard, please report it"

#: Placeholder of the measured value in a line that accepts a requirement.
MARKS = ("{found}", "{above}", "{below}")


class MetricKey(NamedTuple):
    """Name of a metric, with its variable (or group) or its table dimension if there is one."""

    metric: str
    variable: str = ""
    dimension: int = 0

    @property
    def column(self) -> str:
        """Return the name in the metrics frame: "missing of income", "max_absolute_error in dimension 2"."""
        text = f"{self.metric} of {self.variable}" if self.variable else self.metric
        return f"{text} in dimension {self.dimension}" if self.dimension else text


@dataclass(frozen=True)
class Requirement:
    """Limit on one metric.

    Attributes
    ----------
    key : MetricKey
        The metric.
    at_least, at_most : float or None
        Limits on the metric; None for no limit.
    remedy : str
        What the user can do if the requirement is not met.
    promised : bool
        Whether a violation means that the release breaks a promise; otherwise its quality is insufficient.
    line : str
        Line of the specification that corrects or accepts a violation, if there is one: ``[quality] max_t =
        0.4``; "{found}" in the line is replaced by the measured value, "{above}" and "{below}" by that value
        rounded up and down.
    """

    key: MetricKey
    remedy: str
    at_least: float | None = None
    at_most: float | None = None
    promised: bool = False
    line: str = ""

    def met(self, measured: float) -> bool:
        """Return whether a value is within the limits; NaN is not."""
        return measured == measured and not (
            (self.at_least is not None and measured < self.at_least)
            or (self.at_most is not None and measured > self.at_most)
        )

    @property
    def limit(self) -> str:
        """Return the limits in words: "at least 3 and at most 9"."""
        limits = (("at least", self.at_least), ("at most", self.at_most))
        return " and ".join(f"{word} {limit:g}" for word, limit in limits if limit is not None)

    def _shown(self, measured: float) -> str:
        """Return a value with four digits; with all digits if the rounded value would appear to be within the
        limits.
        """
        short = f"{measured:.0f}" if float(measured).is_integer() else f"{measured:.4g}"
        return repr(float(measured)) if self.met(float(short)) else short

    def failure(self, measured: float | None, what: str = "") -> Failure:
        """Return a failed requirement on `what`; the value None means that the metric was not measured."""
        found = "not measured" if measured is None else self._shown(measured)
        line = self.line
        if measured is not None and math.isfinite(measured):
            line = line.replace("{found}", found)
            line = line.replace("{above}", _rounded(measured, math.ceil))
            line = line.replace("{below}", _rounded(measured, math.floor))
        if any(mark in line for mark in MARKS):
            line = ""  # no limit accepts an unknown value
        return Failure(self.key.column, what or self.key.column, found, self.limit, self.remedy, line)


def _rounded(value: float, to: Callable[[float], int]) -> str:
    """Round a number up or down to three digits, so that the measured value satisfies the result as a
    limit.
    """
    if value == 0:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - 2)
    return f"{to(value / unit) * unit:.6g}"


def quoted(name: str) -> str:
    """Return the name of a column as a TOML string or key."""
    return json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")


def accept_line(name: str, section: str = "quality", accepted: Collection[str] = ()) -> str:
    """Return the line by which a steward accepts a default limit, or raises a limit accepted earlier."""
    if name in accepted:
        return f"[{section}] {name} = {{above}}"
    return f'[{section}] accept = {{ {name} = "REASON, BY WHOM" }}'
