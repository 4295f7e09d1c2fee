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
    """Least probability, over the categories, that a value is kept."""
    matrix: Literal["invariant", "uniform"] = "invariant"
    """Invariant: expected counts of each variable are those of the file (two-stage PRAM). Uniform: every
    other category is as likely, so that counts have to be corrected by the matrix."""
    transitions: tuple[tuple[str, str, str, Annotated[float, Ge(0), Le(1)]], ...] = ()
    """Free matrices, `["sex", "f", "m", 0.1]` each: variable, category, another category, probability. What
    is left of 1 is the probability that the category is kept. Variables that are not named have `matrix`."""

    def unfit(self, variables: Variables) -> Iterator[tuple[str, object, str]]:
        """Return variables that are not perturbed, and probabilities that do not sum to 1."""
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
                yield "transitions", [variable, category, total], "probabilities of a category of at most 1"
