"""Clustering of an array of records: validate it, choose the algorithm, map the labels back to the original
order.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from microguard.sdc.algorithms.algorithm import EFFORTS
from microguard.sdc.algorithms.microaggregation import (
    MICROAGGREGATION,
    ClusteringAlgorithm,
    ColumnGenerationParameters,
    GeneticParams,
    KWardParameters,
    VmdavParameters,
)
from microguard.sdc.algorithms.parameters import Parameters
from microguard.sdc.arguments import check_name, checked_seed
from microguard.sdc.clusters.diversity import Diversity
from microguard.sdc.errors import InvalidParameter, SolverFailed, UnsupportedCombination
from microguard.sdc.microaggregation.clustering import Clustering
from microguard.sdc.microaggregation.global_bound.bound import KIND, WORK, global_bound
from microguard.sdc.microaggregation.heuristics.optimal_univariate import carries
from microguard.sdc.microaggregation.local_search.by_effort import made_diverse
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.stop import Deadline

#: Deprecated keywords, and the parameter class that replaces each.
_DEPRECATED: dict[str, Callable[[Any], Parameters]] = {
    "ranking": KWardParameters,
    "rounding": ColumnGenerationParameters,
    "gain": VmdavParameters,
    "genetic_parameters": GeneticParams,
}


def microaggregate(
    records: Any,
    k: int,
    *,
    effort: str = "standard",
    algorithm: str = "auto",
    standardise: bool = True,
    seed: int = 0,
    time_limit: float | None = None,
    variable_weights: Any = None,
    record_weights: Any = None,
    nominal: Any = None,
    diversity: Diversity | None = None,
    share_of_run: float = 1.0,
    parameters: Parameters | None = None,
    ranking: str | None = None,
    rounding: str | None = None,
    gain: float | None = None,
    genetic_parameters: GeneticParams | None = None,
) -> Clustering:
    """Partition records into clusters of at least k with a small sum of squared errors.

    Parameters
    ----------
    records : (n, p) array or DataFrame
        Finite numbers; nominal variables as codes.
    k : int
        Smallest cluster size, 2 <= k <= n.
    effort : {"fast", "standard", "thorough", "exact"}
        fast: MDAV and three sweeps of local search; above about 10,000 records MDAV runs in blocks of about
        250. standard: 50 sweeps at k = 3, more in smaller files; up to 150 records (k = 3) column generation,
        which mostly proves the optimum. thorough: more work, never a worse result than fast or standard, and
        a proved lower bound for up to 20,000 records without weights. exact: column generation with a proved
        lower bound.
    algorithm : str
        "auto" selects by effort and number of variables. The other values are the names in
        `sdc.algorithms.microaggregation`.
    standardise : bool
        Whether to divide each numeric variable by its standard deviation (ddof=1) first.
    seed : int
        Equal arguments and seeds give equal labels. The seed must be secret if the diversity includes hidden
        (sensitive) variables.
    time_limit : float, optional
        Time limit in seconds, as a safety net. If it ends the search, the result has ``stopped_by ==
        "time"``.
    variable_weights, record_weights, nominal
        See `Records.of`.
    diversity : Diversity, optional
        Required number of distinct values of other variables in every cluster. Algorithm "local-search" uses
        the requirement during the search. The clusters of every other algorithm are merged until they meet
        it; if the algorithm supports effort thorough and the effort is not fast, a local search then improves
        them. Lower bounds ignore the requirement. So that the clusters do not disclose hidden values, the
        search uses perturbed records (`sdc.microaggregation.minimality_attack_mitigation`), which increases
        the loss.
    share_of_run : float
        Share of these records among all records that a run clusters block by block; above 0, at most 1. At
        effort standard a small file is searched longer, and the blocks of a long run share its total work
        limit.
    parameters : VmdavParameters, KWardParameters, GeneticParams or ColumnGenerationParameters, optional
        Parameters of the chosen algorithm.
    ranking, rounding, gain, genetic_parameters
        Deprecated; use `parameters` instead.

    Returns
    -------
    Clustering
        Clusters and their numbers do not depend on the order of the records.

    Raises
    ------
    SdcError
        The subclass names the kind of error. `UnsupportedCombination`: the options are each valid, but the
        algorithm does not support them together.
    """
    check_name("effort", effort, EFFORTS)
    check_name("algorithm", algorithm, ("auto", *MICROAGGREGATION))
    seed = checked_seed(seed)
    if not isinstance(share_of_run, float | int) or not 0.0 < share_of_run <= 1.0:
        raise InvalidParameter("share_of_run: expected a number above 0 and at most 1")
    deadline = Deadline.after(time_limit)
    encoded, order = Records.of(
        records,
        k,
        standardise=standardise,
        variable_weights=variable_weights,
        record_weights=record_weights,
        nominal=nominal,
        diversity=diversity,
    )
    k = int(k)
    name = automatic(encoded, effort) if algorithm == "auto" else algorithm
    row = MICROAGGREGATION[name]
    keywords = {
        "ranking": ranking,
        "rounding": rounding,
        "gain": gain,
        "genetic_parameters": genetic_parameters,
    }
    parameters = _with_deprecated(parameters, keywords)
    row.check(name, effort, parameters, nominal=bool(encoded.nominal))
    _check_carried(row, name, encoded)
    given: dict[str, Any] = {} if parameters is None else {"parameters": parameters}
    if row.by_effort:
        given |= {"effort": effort, "share_of_run": share_of_run}
    heeded = encoded if row.diverse else replace(encoded, diversity=None)
    clustering = row.solver(effort)(heeded, k, deadline=deadline, seed=seed, **given)
    if encoded.diversity is not None and not encoded.diversity.held(clustering.labels):
        searched = effort if effort != "fast" and "thorough" in row.efforts else None
        clustering = made_diverse(
            encoded,
            clustering,
            k,
            deadline=deadline,
            seed=seed,
            effort=searched,
            share_of_run=share_of_run,
        )
    _check(clustering, encoded, k)
    if effort == "thorough" and not deadline.passed:
        clustering = _bounded(clustering, encoded, k)
    labels = np.empty(len(order), dtype=np.int64)
    labels[order] = clustering.labels
    return clustering.relabelled(labels)


def automatic(records: Records, effort: str) -> str:
    """Return the name of the algorithm that "auto" selects."""
    if carries(records):
        return "univariate-optimal"
    return "column-generation" if effort == "exact" else "local-search"


def _with_deprecated(parameters: Parameters | None, keywords: dict[str, Any]) -> Parameters | None:
    """Return the parameters; if a deprecated keyword is given, build them from it.

    Raises
    ------
    InvalidParameter, UnsupportedCombination
    """
    given = {name: value for name, value in keywords.items() if value is not None}
    if not given:
        return parameters
    if parameters is not None or len(given) > 1:
        raise UnsupportedCombination(
            f"parameters: expected no other keywords next to them, found {', '.join(given)}. Leave these out"
        )
    ((keyword, value),) = given.items()
    built = value if isinstance(value, Parameters) else _DEPRECATED[keyword](value)
    warnings.warn(
        f"the keyword {keyword} is deprecated and will be removed in a later minor version; use "
        f"parameters={type(built).__name__}(...) instead",
        DeprecationWarning,
        stacklevel=3,
    )
    return built


def _check_carried(row: ClusteringAlgorithm, name: str, records: Records) -> None:
    """Refuse records that the algorithm does not support."""
    if records.weighted and not row.record_weights:
        raise UnsupportedCombination(
            f"algorithm {name}: expected equal record weights, found others. Choose another algorithm"
        )
    if records.nominal and not row.nominal:
        raise UnsupportedCombination(
            f"algorithm {name}: expected only numeric variables, found nominal ones. Choose another algorithm"
        )
    if row.most_records is not None and len(records) > row.most_records:
        raise UnsupportedCombination(
            f"algorithm {name}: expected at most {row.most_records} records, found {len(records)}. Cluster "
            "the records in blocks"
        )


def _bounded(clustering: Clustering, records: Records, k: int) -> Clustering:
    """Add a lower bound if the method proved none and computing one is cheap compared with the search."""
    work = WORK["thorough"]
    if clustering.lower_bound is not None or records.weighted or not work.carries(*records.values.shape):
        return clustering
    bound = min(clustering.sse, records.weights[0] * global_bound(records.values, k, work=work))
    return replace(clustering, lower_bound=float(bound), bound_kind=KIND)


_FAULT = "This is a fault of the method; choose another algorithm, and report it"


def _check(clustering: Clustering, records: Records, k: int) -> None:
    """Check the promises of a method's result independently; raise an error if one is broken."""
    name, labelled, n = clustering.algorithm, len(clustering.labels), len(records)
    if labelled != n:
        raise SolverFailed(f"algorithm {name}: expected {n} labels, found {labelled}. {_FAULT}")
    if int(clustering.sizes.min()) < k:
        raise SolverFailed(
            f"algorithm {name}: expected clusters of at least {k} records, found a smaller one. {_FAULT}"
        )
    if records.diversity is not None and not records.diversity.held(clustering.labels):
        raise SolverFailed(
            f"algorithm {name}: expected clusters with the required number of distinct values, found one "
            f"with fewer. {_FAULT}"
        )
