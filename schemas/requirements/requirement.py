"""A metric and a limit on it, as gates, guarantees and audits use them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

#: What a person can do where a promise is broken.
BROKEN = "the protection is broken, and this is a fault of microguard: please report it"


class MetricKey(NamedTuple):
    """The name of a metric: with a variable (or group), or a table dimension, if it has one."""

    metric: str
    variable: str = ""
    dimension: int = 0

    @property
    def column(self) -> str:
        """Column of the metrics frame: "missing of income", "max_absolute_error in dimension 2"."""
        text = f"{self.metric} of {self.variable}" if self.variable else self.metric
        return f"{text} in dimension {self.dimension}" if self.dimension else text


@dataclass(frozen=True)
class Requirement:
    """A limit on one metric.

    Attributes
    ----------
    key : MetricKey
        The metric.
    at_least, at_most : float or None
        Its limits.
    remedy : str
        What a person can do where it is not met.
    promised : bool
        Whether the release is broken where it is not met, rather than not good enough.
    """

    key: MetricKey
    remedy: str
    at_least: float | None = None
    at_most: float | None = None
    promised: bool = False

    def met(self, measured: float) -> bool:
        """Whether a value satisfies the limits; NaN does not."""
        return measured == measured and not (
            (self.at_least is not None and measured < self.at_least)
            or (self.at_most is not None and measured > self.at_most)
        )

    def failure(self, measured: float) -> str:
        """Return the metric, the value, the limits, and what to do."""
        limits = [
            f"{word} {limit:g}"
            for word, limit in (("at least", self.at_least), ("at most", self.at_most))
            if limit is not None
        ]
        return f"{self.key.column} is {measured:g}, expected {' and '.join(limits)}: {self.remedy}."
