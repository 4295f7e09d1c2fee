"""Parameters of the post-randomisation method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Le, Lt
from microguard.sdc.algorithms.parameters import Parameters, Variables


@dataclass(frozen=True)
class PramParameters(Parameters):
    """Parameters of the transition matrices (Kooiman, Willenborg and Gouweleeuw 1997)."""

    stay: Annotated[float, Ge(0), Lt(1)] = 0.8
    """Minimum probability, over all categories, that a value remains unchanged."""
    matrix: Literal["invariant", "uniform"] = "invariant"
    """Invariant: the expected counts of each variable equal those of the file (two-stage PRAM). Uniform: a
    changed value becomes each other category with equal probability, so that users have to correct counts by
    the matrix."""
    transitions: tuple[tuple[str, str, str, Annotated[float, Ge(0), Le(1)]], ...] = ()
    """User-defined matrices, as entries such as `["sex", "f", "m", 0.1]`: variable, category, new category,
    probability. The remaining probability, up to 1, is that of no change. Variables without entries use
    `matrix`."""

    def unfit(self, variables: Variables) -> Iterator[tuple[str, object, str]]:
        """Return entries for variables that are not perturbed, and probabilities of a category that sum to
        more than 1.
        """
        leaving: dict[tuple[str, str], float] = {}
        seen: set[tuple[str, str, str]] = set()
        for variable, category, other, probability in self.transitions:
            if variable not in variables.kinds:
                yield "transitions", variable, f"a quasi-identifier: {', '.join(variables.kinds)}"
            if category == other or (variable, category, other) in seen:
                yield "transitions", [variable, category, other], "two different categories, each pair once"
            seen.add((variable, category, other))
            leaving[variable, category] = leaving.get((variable, category), 0.0) + probability
        for (variable, category), total in leaving.items():
            if total > 1 + 1e-12:
                yield (
                    "transitions",
                    [variable, category, total],
                    ("probabilities whose sum for each category is at most 1"),
                )
