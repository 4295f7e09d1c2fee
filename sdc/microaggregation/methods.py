"""The algorithms by name: exchangeable parts behind `microaggregate`.

An algorithm is a function

    solve(records: Records, k: int, *, deadline: Deadline, seed: int, **parameters) -> Clustering

- ``records`` come validated, encoded and in canonical order (`Records.of`): squared Euclidean distances
  of ``records.values`` (n, p), weighted by ``records.weights`` (n,), are the cost. ``2 <= k <= n`` holds.
- the result is ``Clustering.of(records, labels, NAME, lower_bound=..., bound_kind=..., stopped_by=...,
  work={...})``: labels may be any integers (every cluster with at least k records), the SSE is
  computed there. ``lower_bound`` is in units of that SSE, or None where nothing was proved.
- ``deadline`` is a safety net: look at ``deadline.passed`` between units of work, return the incumbent
  and say ``stopped_by="time"``. All other stopping counts work. ``stopped_by="proof"`` where the search
  ended because the bound was reached.
- ``seed`` (a non-negative int) is the only source of randomness; same arguments, same labels.
- every further keyword of `microaggregate` an algorithm understands (``ranking``, ``rounding``, ``gain``,
  ``genetic_parameters``, ``effort``) is named in its row below, has a default in the function, and is passed
  only where the caller gave it; one it does not understand is refused with `UnsupportedCombination`.

To add an algorithm, import its module and add a row to `ALGORITHMS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from microguard.sdc.arguments import check_name
from microguard.sdc.errors import UnsupportedCombination
from microguard.sdc.microaggregation.certified import certify as certified
from microguard.sdc.microaggregation.clustering import Clustering
from microguard.sdc.microaggregation.column_generation import heuristic as column_generation
from microguard.sdc.microaggregation.heuristics import (
    genetic,
    k_ward,
    maximum_distance,
    mdav,
    optimal_univariate,
    projections,
    vmdav,
)
from microguard.sdc.microaggregation.local_search import by_effort as local_search
from microguard.sdc.microaggregation.records import Records

#: Efforts in growing order.
EFFORTS = ("fast", "standard", "thorough", "exact")
#: Column generation holds the squared distances of all pairs: 8 n^2 bytes, 200 MB here.
MOST_PAIRED_RECORDS = 5_000


@dataclass(frozen=True)
class Algorithm:
    """What an algorithm is called and what it can carry.

    Attributes
    ----------
    solve : callable
        See the module's text.
    prove : callable, optional
        What solves effort exact, where that is another program; it takes no further keywords.
    parameters : frozenset of str
        Further keywords it takes.
    efforts : tuple of str
        Efforts it can be asked for. A construction is the same at fast and standard; thorough and exact
        ask for more than it can do.
    record_weights, nominal : bool
        Whether it heeds unequal record weights, and can carry coordinates of nominal variables.
    most_records : int, optional
        Largest file it takes; larger ones are cut into blocks by the caller.
    diverse : bool
        Whether it heeds the diversity of the records; it is given none where it does not.
    """

    solve: Callable[..., Clustering]
    prove: Callable[..., Clustering] | None = None
    parameters: frozenset[str] = frozenset()
    efforts: tuple[str, ...] = ("fast", "standard")
    record_weights: bool = True
    nominal: bool = True
    most_records: int | None = None
    diverse: bool = False

    def solver(self, effort: str) -> Callable[..., Clustering]:
        """What solves this effort."""
        return self.prove if effort == "exact" and self.prove is not None else self.solve

    def check(self, name: str, records: Records, effort: str, given: dict[str, object]) -> None:
        """Raise `UnsupportedCombination` for anything asked for that it cannot carry."""
        if effort not in self.efforts:
            raise UnsupportedCombination(
                f"algorithm {name} cannot carry effort {effort!r}; it can carry {', '.join(self.efforts)}"
            )
        for keyword in given:
            if keyword not in self.parameters:
                raise UnsupportedCombination(f"algorithm {name} has no parameter {keyword}")
            if self.solver(effort) is self.prove:
                raise UnsupportedCombination(f"effort exact of algorithm {name} takes no {keyword}")
        if records.weighted and not self.record_weights:
            raise UnsupportedCombination(f"algorithm {name} cannot carry record weights")
        if records.nominal and not self.nominal:
            raise UnsupportedCombination(f"algorithm {name} cannot carry nominal variables")
        if self.most_records is not None and len(records) > self.most_records:
            raise UnsupportedCombination(
                f"algorithm {name} takes up to {self.most_records} records, found {len(records)}: "
                "cluster them in blocks"
            )


ALGORITHMS: dict[str, Algorithm] = {
    "mdav": Algorithm(mdav.solve),
    "vmdav": Algorithm(vmdav.solve, parameters=frozenset({"gain"})),
    "univariate-optimal": Algorithm(
        optimal_univariate.solve, efforts=EFFORTS, record_weights=False, nominal=False
    ),
    "genetic": Algorithm(
        genetic.solve, parameters=frozenset({"genetic_parameters"}), record_weights=False, nominal=False
    ),
    "mdav-in-blocks": Algorithm(local_search.construct),
    "local-search": Algorithm(
        local_search.search,
        parameters=frozenset({"effort", "share_of_run"}),
        efforts=("standard", "thorough"),
        diverse=True,
    ),
    "maximum-distance": Algorithm(maximum_distance.solve),
    "projection-pv": Algorithm(projections.solve_variable, nominal=False),
    "projection-sz": Algorithm(projections.solve_z_scores, nominal=False),
    "projection-fpc": Algorithm(projections.solve_first_component),
    "k-ward": Algorithm(k_ward.solve, parameters=frozenset({"ranking"})),
    "k-ward-projected": Algorithm(k_ward.solve_projected, parameters=frozenset({"ranking"})),
    "column-generation": Algorithm(
        column_generation.solve,
        certified.solve,
        parameters=frozenset({"rounding"}),
        efforts=("standard", "thorough", "exact"),
        record_weights=False,
        most_records=MOST_PAIRED_RECORDS,
    ),
}


def automatic(records: Records, effort: str) -> str:
    """Name of the algorithm that "auto" stands for."""
    if optimal_univariate.carries(records):
        return "univariate-optimal"
    by_effort = {"fast": "mdav-in-blocks", "standard": "local-search", "thorough": "local-search"}
    return by_effort.get(effort, "column-generation")


def algorithm_named(name: str) -> Algorithm:
    """The algorithm of that name; `InvalidParameter` lists the names there are."""
    check_name("algorithm", name, ("auto", *ALGORITHMS))
    return ALGORITHMS[name]
