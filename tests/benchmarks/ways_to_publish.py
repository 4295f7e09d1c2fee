"""Compare the ways to publish one file: microaggregation, SAFE, suppression, PRAM, rank swapping, noise, ...

The file is Adult: its eight nominal variables by the methods for categories, its five numeric variables by
those for numbers. Two thirds of the records are protected. A logistic regression of income is fitted to the
published records, and its area under the ROC curve is measured on the original other third. An attacker who
has the original records takes the nearest published record for each of them (`sdc.risk.linkage`). Cell keys
publish tables without records. After a kill, the next call with the same code continues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from microguard.sdc.algorithms.algorithm import Effort
from microguard.sdc.clusters.representatives import modes
from microguard.sdc.cta.cell_keys.noise_table import KEY_SPAN, CellKeyParameters, NoiseTable
from microguard.sdc.local_suppression import suppress
from microguard.sdc.microaggregation import microaggregate
from microguard.sdc.nominal import anonymise
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import FrequencyVector, from_frame
from microguard.sdc.perturbation.correlated_noise import factor, with_noise
from microguard.sdc.perturbation.pram import move, transition_matrix
from microguard.sdc.perturbation.rank_swapping import partners
from microguard.sdc.risk.linkage import Points, nearer_and_tied
from microguard.sdc.safe import safe
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import rankdata

from tests.benchmarks.parts import Parts
from tests.benchmarks.table import Table, measured_by
from tests.reference import ADULT, reference_file

K = 5
DIMENSION = 3
#: Value that replaces a locally suppressed value.
SUPPRESSED = "suppressed"
#: Weight of the ridge of the regression.
RIDGE = 1.0


Protect = Callable[[pd.DataFrame], pd.DataFrame]
PAGE_TEXT = """\
Two thirds of Adult are protected, and the other third judges. *AUC* is the area under the ROC curve of a
logistic regression of income that is fitted to the published records, on the third that nobody protected.
*Linked* is the share of records that somebody finds who has the original records and takes the nearest
published one; of several as near, any. Microaggregation, SAFE, suppression and generalisation are
k-anonymous. PRAM, rank swapping and noise promise nothing, and are measured only. Targeted record swapping
needs a geography, which this file does not have ([census](../guides/census.md)). The command above the tables
writes this page."""
#: The numeric variables of Adult.
NUMERIC = ("age", "education_num", "capital_gain", "capital_loss", "hours_per_week")
#: Original records that the attacker links.
LINKED = 2_000
PAGE = Path(__file__).parents[2] / "docs" / "benchmarks" / "ways_to_publish.md"


def run(quick: bool = False) -> Iterator[Table]:
    """Yield a table of nominal and one of numeric variables, and write the page; quick: 3,000 records."""
    everything = pd.read_csv(reference_file("adult.csv"), na_values="?", skipinitialspace=True).dropna()
    everything = everything.sample(frac=1, random_state=2026).reset_index(drop=True)
    everything = everything.iloc[:3_000] if quick else everything
    rich = everything["income"].astype(str).str.contains(">50K").to_numpy()
    effort = "fast" if quick else "standard"
    parts = Parts(f"ways_to_publish-{effort}")
    tables = [
        _nominal(parts, everything[list(ADULT)].astype(str), rich, effort),
        _numeric(parts, everything[list(NUMERIC)].astype(float), rich, effort),
    ]
    parts.forget()
    if not quick:
        PAGE.write_text(_page(tables), encoding="utf-8")
    yield from tables


def _nominal(parts: Parts, frame: pd.DataFrame, rich: np.ndarray, effort: str) -> Table:
    """Return one row per method for categories."""
    training = len(frame) * 2 // 3
    original, rest = frame.iloc[:training].reset_index(drop=True), frame.iloc[training:]
    rows: list[tuple[object, ...]] = []
    for name, method in _nominal_methods(effort).items():
        (records, chi2), seconds = parts.answer(name, partial(method, original))
        squares = tuple(chi2[d] for d in (1, 2, 3))
        if records is None:
            rows.append((name, *squares, None, None, None, seconds))
            continue
        changed = (records.to_numpy() != original.to_numpy()).any(axis=1)
        auc = _area(_predicted(records, rich[:training], rest), rich[training:])
        risk = 100 * _linked(_points_of_categories(original, records))
        rows.append((name, *squares, 100 * float(changed.mean()), risk, auc, seconds))
    _assert_sound(rows, 5)
    return Table(
        f"Adult, {training:,} records, 8 nominal variables",
        ("method", "chi2 1-dim", "2-dim", "3-dim", "records changed, %", "linked, %", "AUC", "CPU s"),
        rows,
        f"k = {K} where a method has k. Chi-square is of all tables up to dimension {DIMENSION}, over cells "
        "that were not empty. Suppressed values are a category that the original does not have.",
    )


def _numeric(parts: Parts, frame: pd.DataFrame, rich: np.ndarray, effort: str) -> Table:
    """Return one row per method for numbers."""
    training = len(frame) * 2 // 3
    original, rest = frame.iloc[:training].reset_index(drop=True), frame.iloc[training:]
    values = original.to_numpy()
    mean, deviation = values.mean(axis=0), values.std(axis=0, ddof=1)
    standard = (values - mean) / deviation
    rows: list[tuple[object, ...]] = []
    for name, method in _numeric_methods(effort).items():
        published, seconds = parts.answer(f"numeric, {name}", partial(method, standard))
        loss = float(((published - standard) ** 2).sum() / (standard**2).sum())
        covariances = np.cov(published.T) - np.cov(standard.T)
        changed = float((published != standard).any(axis=1).mean())
        judged = (rest.to_numpy() - mean) / deviation
        auc = _area(_scored(published, rich[:training], judged), rich[training:])
        none = np.zeros((training, 0), np.int64)
        risk = _linked((standard, none, published, none))
        largest = float(np.abs(covariances).max())
        rows.append((name, 100 * loss, largest, 100 * changed, 100 * risk, auc, seconds))
    _assert_sound(rows, 4)
    return Table(
        f"Adult, {training:,} records, 5 numeric variables",
        ("method", "loss (SSE/SST), %", "largest change of a covariance", "records changed, %", "linked, %",
         "AUC", "CPU s"),
        rows,
        "Variables are standardised. Many values of capital gain and loss are 0.",
    )  # fmt: skip


def _assert_sound(rows: list[tuple[object, ...]], linked: int) -> None:
    """Assert that no method has as many linked records as the original, and that the original's number is
    unchanged.
    """
    first, *others = rows
    assert first[linked - 1] == 0.0
    assert all(row[linked] is None or float(str(row[linked])) < float(str(first[linked])) for row in others)


def _points_of_categories(
    original: pd.DataFrame, published: pd.DataFrame
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return numbers and codes before and after protection; equal codes are equal categories."""
    both = pd.concat([original, published], ignore_index=True)
    codes = np.column_stack([pd.factorize(both[name])[0] for name in both]).astype(np.int64)
    none = np.zeros((len(original), 0))
    return none, codes[: len(original)], none, codes[len(original) :]


def _linked(points: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]) -> float:
    """Return the share of original records whose nearest published record is their own."""
    numbers, codes, numbers_after, codes_after = points
    everywhere = np.zeros(len(codes), np.int64)
    before, after = Points(numbers, codes, everywhere), Points(numbers_after, codes_after, everywhere)
    drawn = np.sort(np.random.default_rng(2026).choice(len(codes), min(LINKED, len(codes)), replace=False))
    nearer, tied = nearer_and_tied(before[drawn], before.distances(after)[drawn], after)
    return float(np.sum(1.0 / np.maximum(tied[~nearer], 1)) / len(drawn))


def _numeric_methods(effort: str) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    def clustered(values: np.ndarray) -> np.ndarray:
        labels = microaggregate(values, K, effort=effort, standardise=False).labels  # type: ignore[arg-type]
        sums = np.zeros((labels.max() + 1, values.shape[1]))
        np.add.at(sums, labels, values)
        return np.asarray((sums / np.bincount(labels)[:, None])[labels])

    def swapped(window: float) -> Callable[[np.ndarray], np.ndarray]:
        def method(values: np.ndarray) -> np.ndarray:
            published = np.empty_like(values)
            for j, column in enumerate(values.T):
                order = np.lexsort([np.random.default_rng(j).random(len(column)), column])
                published[order, j] = column[order][partners(len(column), window, j)]
            return published

        return method

    def noisy(share: float, keep: bool) -> Callable[[np.ndarray], np.ndarray]:
        def method(values: np.ndarray) -> np.ndarray:
            draws = np.random.default_rng(2026).integers(0, 1 << 53, values.shape) * 2.0**-53
            return with_noise(values, factor(np.corrcoef(values.T)), draws, share, keep=keep)

        return method

    return {
        "original": lambda values: values,
        f"microaggregation, k = {K}": clustered,
        "rank swapping, window 5 %": swapped(0.05),
        "rank swapping, window 15 %": swapped(0.15),
        "correlated noise, c = 0.1": noisy(0.1, False),
        "correlated noise, c = 0.1, covariance kept": noisy(0.1, True),
        "correlated noise, c = 0.5": noisy(0.5, False),
    }


def _nominal_methods(
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
        "microaggregation (local search)": measured(
            lambda frame: anonymise(frame, K, DIMENSION, effort=effort).protected
        ),  # type: ignore[arg-type]
        "SAFE": measured(lambda frame: safe(frame, K, DIMENSION, keep_records=True).protected),
        "local suppression": measured(partial(suppressed, effort=effort)),
        "generalisation (Mondrian, mode)": measured(generalised),
        "PRAM, stay 0.9": measured(partial(_moved, stay=0.9)),
        "PRAM, stay 0.7": measured(partial(_moved, stay=0.7)),
        "cell keys (tables only)": _by_cell_keys,
    }


def _moved(frame: pd.DataFrame, stay: float) -> pd.DataFrame:
    """Move the categories of each variable by an invariant matrix."""
    protected = {}
    for place, name in enumerate(frame):
        codes, categories = pd.factorize(frame[name], sort=True)
        matrix = transition_matrix(np.bincount(codes), stay)
        draws = np.random.default_rng(place).random(len(codes))
        protected[name] = np.asarray(categories)[move(codes, matrix, draws)]
    return pd.DataFrame(protected)


def suppressed(frame: pd.DataFrame, k: int = K, effort: Effort = "standard") -> pd.DataFrame:
    """Suppress the fewest values; a random draw decides which records of a combination lose them."""
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
    of_cells = np.zeros(len(controls.original), np.uint64)
    for cells in controls.cells.T:
        np.add.at(of_cells, cells, keys)
    noise = NoiseTable.of(CellKeyParameters(K, K + 2, 4.0))
    published = noise.perturb(controls.original, of_cells % np.uint64(KEY_SPAN))
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


def _predicted(fitted: pd.DataFrame, rich: np.ndarray, rest: pd.DataFrame) -> np.ndarray:
    """Score the other records by their categories; unknown categories have no effect."""
    columns = pd.get_dummies(fitted).columns
    judged = pd.get_dummies(rest).reindex(columns=columns, fill_value=False).astype(float).to_numpy()
    return _scored(sparse.csr_matrix(pd.get_dummies(fitted).astype(float).to_numpy()), rich, judged)


def _scored(design: np.ndarray | sparse.csr_matrix, rich: np.ndarray, judged: np.ndarray) -> np.ndarray:
    """Score records by a ridge logistic regression that is fitted to other records."""

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


def _page(tables: list[Table]) -> str:
    """Return the page of the manual."""
    where = measured_by("ways_to_publish")
    lines = ["# Ways to publish one file", "", PAGE_TEXT.replace("\n", " "), ""]
    for table in tables:
        lines += [f"## {table.title}", where, "", table.markdown().split("\n\n", 1)[1].strip(), ""]
    return "\n".join(lines)
