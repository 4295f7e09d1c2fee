"""Compare methods to publish a nominal file: ours, SAFE, local suppression, generalisation, cell keys.

The file is Adult with eight variables, and k = 5. Two thirds of the records are protected. A logistic
regression of income is fitted to the published records, and its area under the ROC curve is measured on the
original other third. Cell keys publish tables without records, so no model can be fitted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from microguard.sdc.algorithms.algorithm import Effort
from microguard.sdc.clusters.representatives import modes
from microguard.sdc.cta.cell_keys.noise_table import KEY_SPAN, CellKeyParameters
from microguard.sdc.local_suppression import suppress
from microguard.sdc.nominal import anonymise
from microguard.sdc.nominal.cell_keys import perturbed_cells
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import FrequencyVector, from_frame
from microguard.sdc.safe import safe
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import rankdata

from tests.benchmarks.table import Table
from tests.reference import ADULT, reference_file

K = 5
DIMENSION = 3
#: Value that replaces a locally suppressed value.
SUPPRESSED = "suppressed"
#: Weight of the ridge of the regression.
RIDGE = 1.0


@dataclass(frozen=True)
class _Published:
    """Result of one method: records in the original order or None, and chi-square by table dimension."""

    records: pd.DataFrame | None
    chi2: dict[int, float]
    seconds: float


def tables(quick: bool = False) -> dict[str, Callable[[], Table]]:
    """Return one table."""
    return {"ways to publish": partial(table, quick)}


def table(quick: bool = False) -> Table:
    """Return one row per method; quick: 3,000 records and effort fast."""
    everything = pd.read_csv(reference_file("adult.csv"), na_values="?", skipinitialspace=True).dropna()
    everything = everything.sample(frac=1, random_state=2026).reset_index(drop=True)
    everything = everything.iloc[:3_000] if quick else everything
    rich = everything["income"].astype(str).str.contains(">50K").to_numpy()
    frame = everything[list(ADULT)].astype(str)
    training = len(frame) * 2 // 3
    original = frame.iloc[:training].reset_index(drop=True)
    rows: list[tuple[object, ...]] = []
    for name, method in _methods("fast" if quick else "standard").items():
        begin = time.process_time()
        records, chi2 = method(original)
        published = _Published(records, chi2, time.process_time() - begin)
        rows.append((name, *_row(published, original, frame.iloc[training:], rich, training)))
    return Table(
        f"Adult, {training:,} records, 8 variables, k = {K}: five ways to publish",
        ("method", "chi2 1-dim", "2-dim", "3-dim", "records changed, %", "AUC", "CPU s"),
        rows,
        "AUC of income on the original third that nobody protected. Suppressed values are a category that "
        "the original does not have; cell keys publish tables only.",
    )


def _methods(
    effort: str,
) -> dict[str, Callable[[pd.DataFrame], tuple[pd.DataFrame | None, dict[int, float]]]]:
    def measured(
        protect: Callable[[pd.DataFrame], pd.DataFrame],
    ) -> Callable[[pd.DataFrame], tuple[pd.DataFrame, dict[int, float]]]:
        def method(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[int, float]]:
            protected = protect(frame)
            return protected, _chi2_of_records(frame, protected)

        return method

    return {
        "original": measured(lambda frame: frame),
        "local search": measured(lambda frame: anonymise(frame, K, DIMENSION, effort=effort).protected),  # type: ignore[arg-type]
        "SAFE": measured(lambda frame: safe(frame, K, DIMENSION, keep_records=True).protected),
        "local suppression": measured(lambda frame: suppressed(frame, effort=effort)),  # type: ignore[arg-type]
        "generalisation (Mondrian, mode)": measured(generalised),
        "cell keys": _by_cell_keys,
    }


def suppressed(frame: pd.DataFrame, k: int = K, effort: Effort = "standard") -> pd.DataFrame:
    """Suppress the fewest values; a draw decides which records of a combination lose them."""
    codes = np.column_stack([pd.factorize(frame[name], sort=True)[0] for name in frame])
    keys, combination, counts = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    found = suppress(keys, counts, k, effort=effort)
    drawn = np.random.default_rng(2026).permutation(len(frame))
    order = drawn[np.argsort(combination.ravel()[drawn], kind="stable")]
    pattern = np.empty(len(frame), np.int64)
    pattern[order] = np.repeat(found.pattern, found.count)
    protected = frame.copy()
    for j, name in enumerate(frame):
        protected.loc[(pattern >> j & 1) == 1, name] = SUPPRESSED
    return protected


def generalised(frame: pd.DataFrame, k: int = K) -> pd.DataFrame:
    """Protect by Mondrian (LeFevre et al. 2006): bisect by the widest variable, publish modes of leaves."""
    codes = np.column_stack([pd.factorize(frame[name], sort=True)[0] for name in frame])
    labels = np.zeros(len(codes), np.int64)
    leaves, pending = 0, [np.arange(len(codes))]
    while pending:
        members = pending.pop()
        halves = _halves(codes[members], k)
        if halves is None:
            labels[members] = leaves
            leaves += 1
        else:
            pending += [members[halves], members[~halves]]
    return frame.iloc[modes(codes, labels, np.ones(len(codes)))].reset_index(drop=True)


def _halves(codes: np.ndarray, k: int) -> np.ndarray | None:
    """Return which records are in the lower half, by the variable with most values that can be cut."""
    values = [len(np.unique(column)) for column in codes.T]
    for j in np.argsort(-np.array(values), kind="stable"):
        if values[j] > 1:
            lower = codes[:, j] <= np.sort(codes[:, j])[(len(codes) - 1) // 2]
            if k <= lower.sum() <= len(codes) - k:
                return np.asarray(lower)
    return None


def _by_cell_keys(frame: pd.DataFrame) -> tuple[None, dict[int, float]]:
    coded = from_frame(frame)
    keys = np.zeros(len(coded.frequencies), np.uint64)
    drawn = np.random.default_rng(2026).integers(0, KEY_SPAN, len(frame)).astype(np.uint64)
    np.add.at(keys, coded.combination, drawn)
    controls = ControlTables.of(coded.frequencies, DIMENSION)
    published = perturbed_cells(controls, keys, CellKeyParameters(K, K + 2, 4.0))
    return None, _chi2(controls, published)


def _chi2_of_records(original: pd.DataFrame, protected: pd.DataFrame) -> dict[int, float]:
    """Return chi-square by table dimension for two frames that may differ in records and values."""
    both = from_frame(pd.concat([original, protected], ignore_index=True))
    m, n = len(both.frequencies), len(original)
    before, after = (np.bincount(part, minlength=m) for part in (both.combination[:n], both.combination[n:]))
    frequencies = FrequencyVector(
        both.frequencies.codes, before, both.frequencies.domain_sizes, both.frequencies.names
    )
    controls = ControlTables.of(frequencies, DIMENSION)
    return _chi2(controls, controls.totals(after))


def _chi2(controls: ControlTables, published: np.ndarray) -> dict[int, float]:
    """Return the chi-square of published cells (Cost 2023, section 6.1) by table dimension."""
    squares = (published - controls.original) ** 2 * controls.reciprocals
    return {d: float(squares[controls.dimension == d].sum()) for d in range(1, DIMENSION + 1)}


def _row(
    published: _Published, original: pd.DataFrame, rest: pd.DataFrame, rich: np.ndarray, training: int
) -> tuple[object, ...]:
    chi2 = tuple(published.chi2[d] for d in (1, 2, 3))
    if published.records is None:
        return (*chi2, None, None, published.seconds)
    changed = (published.records.to_numpy() != original.to_numpy()).any(axis=1)
    auc = _area(_predicted(published.records, rich[:training], rest), rich[training:])
    return (*chi2, 100 * float(changed.mean()), auc, published.seconds)


def _predicted(fitted: pd.DataFrame, rich: np.ndarray, rest: pd.DataFrame) -> np.ndarray:
    """Score the other records by a ridge logistic regression; unknown values have no effect."""
    design = sparse.csr_matrix(pd.get_dummies(fitted).astype(float).to_numpy())
    columns = pd.get_dummies(fitted).columns
    judged = pd.get_dummies(rest).reindex(columns=columns, fill_value=False).astype(float).to_numpy()

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        scores = design @ weights[1:] + weights[0]
        value = np.logaddexp(0, scores).sum() - scores[rich].sum() + 0.5 * RIDGE * weights[1:] @ weights[1:]
        residual = expit(scores) - rich
        return float(value), np.concatenate([[residual.sum()], design.T @ residual + RIDGE * weights[1:]])

    weights = minimize(loss, np.zeros(design.shape[1] + 1), jac=True, method="L-BFGS-B").x
    return np.asarray(judged @ weights[1:] + weights[0])


def _area(scores: np.ndarray, rich: np.ndarray) -> float:
    """Return the area under the ROC curve: the share of correctly ordered pairs."""
    ranks = rankdata(scores)[rich].sum()
    ones, zeros = int(rich.sum()), int((~rich).sum())
    return float((ranks - ones * (ones + 1) / 2) / (ones * zeros))
