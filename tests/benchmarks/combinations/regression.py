"""The regression check of Cost 2023, section 6.2.8: predictions before and after protection.

A multinomial logit predicts one variable of Adult from four others. It is fitted to the original records and
to the protected records. The probabilities that both models predict for the original records are compared.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
from microguard.sdc.algorithms.nominal import ChiExactParameters
from microguard.sdc.nominal.chi_exact import chi_exact
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import from_frame
from microguard.sdc.nominal.frequency_search.search import protect_frequencies
from microguard.sdc.nominal.two_step import two_step
from microguard.sdc.safe.protection import safe_frequencies
from microguard.sdc.stop import Deadline
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from tests.benchmarks.combinations.scenarios import instance
from tests.benchmarks.parts import Parts
from tests.benchmarks.table import Table

#: Dependent variable of Figure 6.20: attribute 3.
DEPENDENT = "relationship"
#: Weight of the ridge that keeps coefficients finite where 200 records separate a value perfectly.
RIDGE = 0.1
#: Seconds of Chi-ex on one of the samples, a safety net as its start is near the optimum, and of the exact
#: aggregation of a random partition, which has no end.
CHI_EXACT_SECONDS = 10.0


def table(parts: Parts, quick: bool = False) -> Table:
    """Mean l2 distance between predicted probabilities before and after protection."""
    samples = 3 if quick else 100
    distances: dict[str, list[float]] = {
        name: [] for name in ("Chi-ex", "own-hhe", "local search", "SAFE", "random")
    }
    for number in range(samples):
        sample, _ = parts.answer(f"regression {number}", partial(_distances, number, quick))
        for name, distance in sample.items():
            distances[name].append(distance)
    rows: list[tuple[object, ...]] = [
        (name, float(np.mean(values)), float(np.median(values)), max(values))
        for name, values in distances.items()
    ]
    return Table(
        f"Multinomial logit for {DEPENDENT}, {samples} samples of adult200m5: distance of probabilities",
        ("method", "mean", "median", "max"),
        rows,
        "Per record, the l2 distance of the probability vectors, averaged over records. The thesis "
        "finds its methods comparable (Figure 6.20), Chi-ex slightly ahead.",
    )


def _distances(number: int, quick: bool) -> dict[str, float]:
    """Return the distance of the predicted probabilities on one sample, by method."""
    frame = instance("adult200m5", 100 + number)
    coded = from_frame(frame)
    frequencies = coded.frequencies
    controls = ControlTables.of(frequencies, 3)
    searched = protect_frequencies(frequencies, 3, controls, effort="fast").counts
    counts = {
        "local search": searched,
        "Chi-ex": chi_exact(
            frequencies,
            3,
            controls,
            start=searched,
            parameters=ChiExactParameters(nodes=0 if quick else 200),
            deadline=Deadline.after(CHI_EXACT_SECONDS),
        ).counts,
        "own-hhe": two_step(frequencies, 3, controls, name="own-hhe").counts,
        "SAFE": safe_frequencies(frequencies, 3, controls, keep_records=True).counts,
        "random": two_step(
            frequencies, 3, controls, name="random", deadline=Deadline.after(CHI_EXACT_SECONDS)
        ).counts,
    }
    before = _probabilities(frame, frame)
    distances = {}
    for name, frequency in counts.items():
        protected = coded.decode_combinations(np.repeat(np.arange(len(frequencies)), frequency))
        distances[name] = _distance(before, _probabilities(protected, frame))
    return distances


def _probabilities(fitted: pd.DataFrame, predicted: pd.DataFrame) -> pd.DataFrame:
    """Return the probabilities of the dependent values for `predicted`, with a model fitted to `fitted`."""
    predictors = [name for name in fitted.columns if name != DEPENDENT]
    both = pd.get_dummies(
        pd.concat([fitted[predictors], predicted[predictors]]), drop_first=True, dtype=float
    )
    design = np.column_stack([np.ones(len(both)), both.to_numpy()])
    values, codes = np.unique(fitted[DEPENDENT].astype(str), return_inverse=True)
    weights = _fit(design[: len(fitted)], codes, len(values))
    return pd.DataFrame(softmax(design[len(fitted) :] @ weights, axis=1), columns=values)


def _fit(design: np.ndarray, codes: np.ndarray, values: int) -> np.ndarray:
    """Return the coefficients (predictors, values) of a multinomial logit by penalised maximum likelihood."""
    indicator = np.eye(values)[codes]

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights = flat.reshape(-1, values)
        scores = design @ weights
        value = -(indicator * log_softmax(scores, axis=1)).sum() + 0.5 * RIDGE * (flat**2).sum()
        gradient = design.T @ (softmax(scores, axis=1) - indicator) + RIDGE * weights
        return float(value), gradient.ravel()

    start = np.zeros(design.shape[1] * values)
    return minimize(loss, start, jac=True, method="L-BFGS-B").x.reshape(-1, values)


def _distance(before: pd.DataFrame, after: pd.DataFrame) -> float:
    """Return the mean l2 distance over records; a value without records has probability 0."""
    values = before.columns.union(after.columns)
    difference = before.reindex(columns=values, fill_value=0.0) - after.reindex(
        columns=values, fill_value=0.0
    )
    return float(np.sqrt((difference**2).sum(axis=1)).mean())
