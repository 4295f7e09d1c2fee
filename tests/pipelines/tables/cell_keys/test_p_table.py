"""Tests of custom p-tables: the published table follows from the p-table; an unusable p-table is refused."""

from __future__ import annotations

import csv
import hashlib
import hmac
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.publication.key import KEY_BYTES, KEY_VARIABLE
from microguard.pipelines.tables.cell_keys.p_table import read_p_table
from microguard.schemas.errors import SpecificationError

from tests.pipelines.turnover import records, specification
from tests.reference import reference_file

KEY = "5a" * KEY_BYTES
NOISY = {"kind": "frequency", "value": None, "dominance": None, "decimals": None, "effort": None} | {
    "method": "cell_key"
}
HEADING = '"i";"j";"p";"v";"p_int_ub"\n'
LINES = (
    "0;0;1;0;1\n1;0;0.75;-1;0.75\n1;3;0.125;2;0.875\n1;5;0.125;4;1\n2;0;0.5;-2;0.5\n2;4;0.5;2;1\n"
    "3;0;0.25;-3;0.25\n3;4;0.75;1;1\n4;3;0.5;-1;0.5\n4;5;0.5;1;1\n"
)


def written(folder, text):
    (folder / "p.txt").write_text(text)
    return str(folder / "p.txt")


def recomputed(path, count, key):
    """Return the published count by the bounds of the file, in plain Python without microguard."""
    with open(path, newline="") as file:
        lines = [
            {name: float(text) for name, text in line.items()} for line in csv.DictReader(file, delimiter=";")
        ]
    bound = next(name for name in lines[0] if name in ("p_int_ub", "p_ij_ub"))
    row = min(count, max(line["i"] for line in lines))
    return count + next(int(line["v"]) for line in lines if line["i"] == row and key < line[bound])


@pytest.mark.parametrize("name", ["Frequency/tau_testW_ptable.txt", "Magnitude/ptab_freq.txt"])
def test_noise_of_a_tau_argus_p_table_equals_that_of_its_bounds(name):
    path = reference_file(f"tauargus/cellkey/{name}")
    noise = read_p_table(str(path), 3)
    rng = np.random.default_rng(1)
    counts, keys = rng.integers(0, 15, 5_000), rng.integers(0, 1 << 32, 5_000).astype(np.uint64)
    shown = noise.perturb(counts, keys)
    expected = [recomputed(path, int(c), int(k) / 2**32) for c, k in zip(counts, keys, strict=True)]
    assert shown.tolist() == expected
    assert (shown != counts).mean() > 0.3


def test_table_with_a_custom_p_table_is_recomputed_cell_for_cell(adjusted, tmp_path, monkeypatch):
    (tmp_path / "key").write_text(KEY)
    (tmp_path / "key").chmod(0o600)
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "key"))
    path = reference_file("tauargus/cellkey/Magnitude/ptab_freq.txt")
    firms = records(count=400).assign(person=[f"p{number}" for number in range(400)])
    unit, limit = {"person": {"role": "unit"}}, {"max_posterior": 1.0}
    chosen = specification(tmp_path, firms, unit, **NOISY | {"noise_table": str(path), "quality": limit})
    content = adjusted(chosen)
    derived = hmac.new(KEY.encode(), b"keys of cells", hashlib.sha256).digest()
    keys = np.array(
        [
            int.from_bytes(hashlib.blake2b(each.encode(), key=derived, digest_size=16).digest()[:4], "big")
            for each in firms["person"]
        ]
    )
    release = Path(content["release"])
    columns, cells = ["a10", "a21", "region"], 0
    for frame in (pq.read_table(each).to_pandas() for each in sorted(release.rglob("*.parquet"))):
        for row in frame.to_dict("records"):
            inside = np.ones(len(firms), dtype=bool)
            for name in (name for name in columns if name in row and row[name] != "Total"):
                inside &= (firms[name] == row[name]).to_numpy()
            key = int(keys[inside].sum()) % 2**32 / 2**32
            assert row["frequency"] == recomputed(path, int(inside.sum()), key)
            cells += 1
    assert cells > 20
    manifest = json.loads((release / "manifest.json").read_text())
    assert manifest["method"] == {"name": "cell keys", "largest": 5, "variance": pytest.approx(3), "least": 3}


@pytest.mark.parametrize(
    ("text", "least", "message"),
    [
        ("", 3, "a heading with i; j; p"),
        ("i;j\n0;0\n", 3, "none of p"),
        (HEADING + LINES.replace("0.75;-1", "0,75;-1"), 3, "something else in line 3"),
        (
            HEADING + LINES.replace("2;4;0.5", "2;4;0.4"),
            3,
            "expected probabilities with the sum 1, found 0.9",
        ),
        (HEADING + LINES.replace("2;4;0.5;", "2;5;0.5;"), 3, "expected noise with mean 0, found 0.5"),
        (HEADING + LINES.replace("2;4;0.5;", "2;4.5;0.5;"), 3, "whole numbers i and j"),
        (HEADING + LINES, 5, "expected the minimum frequency, 5, as its smallest .*found 3"),
        (HEADING + LINES.split("3;0;")[0], 3, "last count of a p-table, 2: expected published counts of at"),
        (HEADING + LINES.replace("0;0;1;0;1", "0;4;1;4;1"), 3, "mean 0"),
    ],
)
def test_unusable_p_table_is_refused_with_a_reason(tmp_path, text, least, message):
    with pytest.raises(SpecificationError, match=message):
        read_p_table(written(tmp_path, text), least)


def test_p_table_noise_equals_its_lines(tmp_path):
    noise = read_p_table(written(tmp_path, HEADING + LINES), 3)
    assert (noise.parameters.k, noise.parameters.largest, noise.parameters.variance) == (3, 4, 1)


def test_missing_p_table_is_refused(tmp_path):
    with pytest.raises(SpecificationError, match=r"\[table\] noise_table: expected a text file"):
        read_p_table(str(tmp_path / "none.txt"), 3)
