"""Attacks on a release by an attacker with original records: exact knowledge, homogeneity, uniques, linkage.

`python -m tests.benchmarks.attacks RELEASE_FOLDER ORIGINALS` attacks any release. The published files and the
manifest are read as by any reader. The originals (Parquet) are the knowledge of the attackers, and decide
whether their claims are correct.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from tests.benchmarks.table import Table
from tests.system.command import microguard

TRIED = 2_000
"""Maximum number of originals that an attacker searches; drawn with a fixed seed."""
COLLEAGUE = ("occupation", "hours")
"""Variables that a colleague knows exactly in addition to the region."""
NUMBER = "record_number"
"""Column that identifies records, for evaluating the attacks; attackers do not use it."""
TIE = 1e-9


@dataclass(frozen=True)
class Release:
    """The published data that an attacker has in addition to the originals.

    Attributes
    ----------
    published, original : DataFrame
        Records with the columns of the release.
    k : int
    protected, numeric, plain, sensitive : tuple of str
        Quasi-identifiers, numeric quasi-identifiers, unmodified columns, and unmodified sensitive columns.
    region : tuple of str
        Name of the region, or nothing.
    """

    published: pd.DataFrame
    original: pd.DataFrame
    k: int
    protected: tuple[str, ...]
    numeric: tuple[str, ...]
    plain: tuple[str, ...]
    sensitive: tuple[str, ...]
    region: tuple[str, ...]

    @classmethod
    def of(cls, folder: Path, original: Path) -> Release:
        """Read a release folder and the originals."""
        manifest = json.loads((folder / "manifest.json").read_text())
        columns = manifest["columns"]

        def chosen(**keys: object) -> tuple[str, ...]:
            return tuple(c["name"] for c in columns if all(c[key] == value for key, value in keys.items()))

        names = [c["name"] for c in columns]
        return cls(
            ds.dataset(folder / "microdata").to_table().to_pandas()[names],
            ds.dataset(original).to_table(columns=names).to_pandas(),
            manifest["guarantee"]["k"],
            chosen(protected=True),
            chosen(protected=True, kind="numeric"),
            tuple(name for name in chosen(protected=False) if name != NUMBER),
            chosen(role="sensitive"),
            chosen(role="region"),
        )


@dataclass(frozen=True)
class Found:
    """Shares of the originals whose record was identified, and whose sensitive value was inferred."""

    record: float
    sensitive: float


def search(release: Release, exact: Sequence[str], seed: int = 1) -> Found:
    """Search originals: among the records equal in `exact`, the nearest in the protected variables.

    The distance is that of standardised numbers, and a mismatch of categories counts 1. Among equally near
    records the attacker picks one at random. A match is correct if `NUMBER` is equal. Without this column all
    unmodified columns must be equal; if several records have these values, the share of correct matches is a
    lower bound.
    """
    n = len(release.original)
    known = _classes(_stacked(release, exact))
    numbered = NUMBER in release.published.columns
    truth = _classes(_stacked(release, [NUMBER] if numbered else release.plain))
    values = _classes(_stacked(release, release.sensitive))
    before, after = _coordinates(release)
    order = np.argsort(known[n:], kind="stable")
    ordered = known[n:][order]
    same = np.bincount(truth[n:], minlength=int(truth.max()) + 1)
    tried = np.random.default_rng(seed).permutation(n)[:TRIED]
    record = sensitive = 0.0
    for i in tried:
        candidates = order[slice(*np.searchsorted(ordered, [known[i], known[i] + 1]))]
        if len(candidates) == 0:
            continue
        distances = np.square(after[candidates] - before[i]).sum(axis=1)
        nearest = candidates[distances <= distances.min() * (1.0 + TIE) + TIE]
        record += float(np.mean(truth[n:][nearest] == truth[i]) / max(same[truth[i]], 1))
        sensitive += float(np.mean(values[n:][nearest] == values[i]))
    return Found(record / len(tried), sensitive / len(tried))


def _classes(frame: pd.DataFrame, names: Sequence[str] | None = None) -> np.ndarray:
    """Return the class of each record, 0 to m - 1, by equal values of `names` (default: all columns)."""
    keys = list(frame.columns if names is None else names)
    if not keys:
        return np.zeros(len(frame), np.int64)
    return frame.groupby(keys, dropna=False, sort=False, observed=True).ngroup().to_numpy(np.int64)


def _unique_share(classes: np.ndarray) -> float:
    """Return the share of records that are unique in their class."""
    return float(np.mean(np.bincount(classes)[classes] == 1))


def _stacked(release: Release, names: Sequence[str]) -> pd.DataFrame:
    return pd.concat([release.original[list(names)], release.published[list(names)]], ignore_index=True)


def _coordinates(release: Release) -> tuple[np.ndarray, np.ndarray]:
    both = _stacked(release, release.protected)
    parts = []
    for name in release.protected:
        if name in release.numeric:
            values = both[name].to_numpy(np.float64)
            spread = np.nanstd(values[: len(release.original)])
            parts.append(np.nan_to_num(values / (spread or 1.0))[:, None])
        else:
            indicators = pd.get_dummies(both[name], dummy_na=True).to_numpy(np.float64)
            parts.append(indicators / np.sqrt(2.0))
    points = np.hstack(parts)
    return points[: len(release.original)], points[len(release.original) :]


def attacked(release: Release) -> dict[str, float]:
    """Run all attacks, and return their success as shares of the records."""
    frame = release.published
    keys = [*release.region, *release.protected]
    classes = _classes(frame, keys)
    shares = {
        "unique on protected variables": _unique_share(classes),
        "the same with one plain column, worst": max(
            (_unique_share(_classes(frame, [*keys, name])) for name in release.plain), default=0.0
        ),
        "unique on all columns": _unique_share(_classes(frame, [*keys, *release.plain])),
        "linked by distance": search(release, release.region).record,
    }
    exact = [name for name in COLLEAGUE if name in release.plain]
    if exact:
        colleague = search(release, [*release.region, *exact])
        shares |= {"found by a colleague": colleague.record}
        if release.sensitive:
            shares |= {"told to a colleague": colleague.sensitive}
    for name in release.sensitive:
        counts = pd.crosstab(classes, _classes(frame, [name])).to_numpy()
        homogeneous = np.count_nonzero(counts, axis=1) == 1
        shares |= {
            f"homogeneous in {name}": float(counts[homogeneous].sum() / counts.sum()),
            f"{name} guessed by class": float(counts.max(axis=1).sum() / counts.sum()),
            f"{name} guessed without a release": float(counts.sum(axis=0).max() / counts.sum()),
        }
    return shares


def run(quick: bool = False) -> Iterator[Table]:
    """Attack the demo data at k = 3, 5 and 10, and with two diagnoses in every cluster."""
    records = 5_000 if quick else 20_000
    cases = [("k = 3", 3, 1), ("k = 5", 5, 1), ("k = 10", 10, 1), ("k = 3, two diagnoses", 3, 2)]
    columns: dict[str, dict[str, float]] = {}
    for name, k, diversity in cases:
        with tempfile.TemporaryDirectory() as folder:
            release = _demo(Path(folder), records, k, diversity)
            columns[name] = attacked(release)
            assert columns[name]["unique on protected variables"] == 0.0
            assert columns[name]["linked by distance"] <= 1.0 / k, "a class has fewer than k records"
    measures = list(columns["k = 3"])
    rows = [(measure, *(100 * columns[name][measure] for name, _, _ in cases)) for measure in measures]
    yield Table(
        f"Attacks on the demo's town, {records:,} persons",
        ("attack, % of the records", *(name for name, _, _ in cases)),
        rows,
        note=f"Searches try {min(TRIED, records):,} originals; protected data by the demo's own roles.",
    )


def _demo(folder: Path, records: int, k: int, diversity: int) -> Release:
    made = microguard("demo", "--records", str(records), "--out", folder, "--only-data", "--quiet")
    assert made.code == 0, made.err
    number = 0
    for part in sorted((folder / "data").glob("*.parquet")):
        table = pq.read_table(part)
        numbers = pa.array(np.arange(number, number + len(table)))
        pq.write_table(table.append_column(NUMBER, numbers), part)
        number += len(table)
    path = folder / "release.toml"
    path.write_text(path.read_text().replace("[variables]", f'[variables]\n{NUMBER} = {{ role = "other" }}'))
    options = ["--set", f"release.k={k}", "--set", f"method.min_diversity={diversity}", "--quiet"]
    ran = microguard("protect", folder / "release.toml", *options)
    assert ran.code == 0, ran.err
    current = json.loads((folder / "lake" / "current.json").read_text())["release_id"]
    return Release.of(folder / "lake" / current, folder / "data")


if __name__ == "__main__":
    for attack, share in attacked(Release.of(Path(sys.argv[1]), Path(sys.argv[2]))).items():
        print(f"{attack}: {share:.2%}")
