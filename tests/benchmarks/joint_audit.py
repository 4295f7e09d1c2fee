"""Joint audit of Tarragona: the exposure if every update is protected from scratch, and the cost.

The files are public files. The alignment is that of an attacker who knows the class of each record from known
values. For comparison, the same updates are published with the rule of a register: a class is published and
suppressed as a whole, and its members never change.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from microguard.pipelines.audit.differencing.classes import Classes
from microguard.pipelines.audit.differencing.exposure import JointExposure, joint_exposure
from microguard.sdc.microaggregation import microaggregate

from tests.benchmarks.table import Table
from tests.reference import REFERENCE_FOLDER

#: Number of records at the start, entrants and exits per update, and k.
FIRST, COME, GO, K = 720, (4, 24), 5, 3
#: Values are whole thousands of pesetas: means are published as whole numbers.
ROUNDING = 1.0


def run(quick: bool = False) -> Iterator[Table]:
    """Audit updates of Tarragona, two k of one file, and 100,000 units in 30 releases (quick: 10,000, 10)."""
    values = np.loadtxt(REFERENCE_FOLDER / "tarragona.csv", delimiter=",", skiprows=1)
    yield nights(values, 5)
    yield two_k(values)
    yield scale(10_000, 10) if quick else scale(100_000, 30)


def nights(values: np.ndarray, number: int) -> Table:
    """Audit after each update, protected from scratch and with the rule of a register."""
    anew, register = [], []
    classes: dict[int, int] = {}
    waiting: list[int] = []
    rows: list[tuple[object, ...]] = []
    for night, there in enumerate(_stream(len(values), number)):
        labels = _clustered(values, there)
        anew.append(_release(f"anew{night}", there, labels, values))
        waiting = [unit for unit in there if unit not in classes]
        if len(waiting) >= (K if night == 0 else 2 * K):
            start = len(classes)
            for unit, label in zip(waiting, _clustered(values, np.array(waiting)), strict=True):
                classes[unit] = start + int(label)
        standing = {classes[unit] for unit in there if unit in classes}
        published = np.array(sorted(unit for unit, label in classes.items() if label in standing))
        of = np.array([classes[unit] for unit in published])
        register.append(_release(f"rule{night}", published, of, values))
        rows.append(
            (night + 1, len(there), *_counts(joint_exposure(anew)), *_counts(joint_exposure(register)))
        )
    assert rows[-1][3], "the attack must succeed if every update is protected from scratch"
    assert not any(row[5] or row[6] for row in rows), (
        "with the rule no history may have fewer than k units, and no value may be determined"
    )
    columns = ("night", "records", "anew: below k", "anew: determined units", "anew: determined values")
    return Table(
        f"Tarragona, k = {K}, {COME[0]} to {COME[1]} come and {GO} leave a night",
        (*columns, "rule: below k", "rule: determined units", "rule: determined values"),
        rows,
        "Means rounded to whole numbers; a value known within 1 % or its rounding unit counts.",
    )


def two_k(values: np.ndarray) -> Table:
    """Audit releases of one file with k = 3 and k = 4, and with k = 3 and k = 5."""
    rows: list[tuple[object, ...]] = []
    everybody = np.arange(len(values))
    first = _release("k3", everybody, _clustered(values, everybody), values)
    for other in (4, 5):
        second = _release(f"k{other}", everybody, _clustered(values, everybody, other), values, other)
        exposure = joint_exposure([first, second])
        assert exposure.below_k
        rows.append(
            (f"3 and {other}", *(round(100 * each / len(values), 1) for each in _counts(exposure)[:2]))
        )
    return Table("Tarragona, two k of one file", ("k", "below k, %", "determined units, %"), rows)


def scale(units: int, number: int) -> Table:
    """Audit a register with permanent classes, and the same units with new classes at every update."""
    rows: list[tuple[object, ...]] = []
    for name, anew in (("classes stand", False), ("solved anew", True)):
        releases = _large(units, number, anew)
        start = time.process_time()
        exposure = joint_exposure(releases)
        seconds = time.process_time() - start
        assert exposure.safe != anew
        rows.append((name, units, number, seconds, *_counts(exposure)))
    columns = ("series", "units at first", "releases", "CPU seconds", "below k", "determined units")
    return Table("The joint audit at scale, 5 variables", (*columns, "determined values"), rows)


def _counts(exposure: JointExposure) -> tuple[int, int, int]:
    return exposure.below_k, exposure.determined_units, exposure.determined_values


def _stream(units: int, number: int) -> Iterator[np.ndarray]:
    """Return the records of each update."""
    random = np.random.default_rng(11)
    order = random.permutation(units)
    there, rest = list(order[:FIRST]), list(order[FIRST:])
    for night in range(number):
        if night:
            come = int(random.integers(COME[0], COME[1] + 1))
            there = [there[i] for i in np.sort(random.permutation(len(there))[GO:])] + rest[:come]
            rest = rest[come:]
        yield np.array(sorted(there))


def _clustered(values: np.ndarray, there: np.ndarray, k: int = K) -> np.ndarray:
    return microaggregate(values[there], k, algorithm="mdav", effort="fast").labels


def _release(name: str, unit: np.ndarray, labels: np.ndarray, values: np.ndarray, k: int = K) -> Classes:
    """Return the release of these records: rounded means of their classes."""
    _, of = np.unique(labels, return_inverse=True)
    size = np.bincount(of)
    variables = [f"x{j}" for j in range(values.shape[1])]
    means = {
        name: np.rint(np.bincount(of, values[unit, j]) / size / ROUNDING) * ROUNDING
        for j, name in enumerate(variables)
    }
    rounding = dict.fromkeys(variables, ROUNDING)
    return Classes(name, k, tuple(variables), unit, of, np.zeros(len(size), np.int64), means, rounding)


def _large(units: int, number: int, anew: bool) -> list[Classes]:
    """Return releases of many units with 1 % entrants; with permanent classes, exits are retained records."""
    random = np.random.default_rng(0)
    values = np.round(random.lognormal(8, 1, (2 * units, 5)))
    there, labels, classes, releases = np.arange(units), np.zeros(2 * units, np.int64), 0, []
    for night in range(number):
        come = np.arange(0) if night == 0 else units + (night - 1) * (units // 100) + np.arange(units // 100)
        if anew:
            there = np.concatenate([there[random.random(len(there)) >= (0.01 if night else 0)], come])
            of = random.permutation(np.minimum(np.arange(len(there)) // 4, len(there) // 4 - 1))
        else:
            fresh = there if night == 0 else come
            cut = np.minimum(np.arange(len(fresh)) // 4, len(fresh) // 4 - 1)
            labels[random.permutation(fresh)] = classes + cut
            classes += int(cut[-1]) + 1
            there = np.concatenate([there, come])
            of = labels[there]
        releases.append(_release(f"r{night}", there, of, values))
    return releases
