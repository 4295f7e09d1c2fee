"""Tests of fixed-width microdata with tau-ARGUS metadata: one call reads, protects and writes them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.tables.tau_argus import FOLDER
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.read import read_specification
from microguard.schemas.specification.tau_argus import parents_of
from microguard.sdc.cta.rules.sensitivity import p_percent

from tests.reference import reference_file

SPECIFICATION = """
[release]
name = "turnover"
k = 3
[input]
path = "turnover.asc"
metadata = "turnover.rda"
[publish]
path = "lake"
evidence = "evidence"
[table]
value = "Var2"
tables = [["Size", "Region"]]
p_percent = 15
minimum_frequency = 1
effort = "fast"
{more}
"""


ACCEPTED = 'quality.accept = { max_grand_total_change = "a test, A. Steward" }'


def written(folder: Path, more: str = "", count: int = 400) -> pd.DataFrame:
    """Write records in the layout of tau-ARGUS's own metadata, and return them."""
    rng = np.random.default_rng(8)
    frame = pd.DataFrame(
        {
            "Industry": rng.choice(["34110", "34120", "35100"], count),
            "Size": rng.choice([" 2", " 4", "99"], count, p=[0.6, 0.38, 0.02]),
            "Region": rng.choice([f"{each:2d}" for each in range(1, 13)], count),
            "Wgt": np.full(count, 2.0),
            "Var1": rng.integers(1, 99, count),
            "Var2": rng.lognormal(3, 1.2, count).round(2),
        }
    )
    lines = [
        f"84 {row.Industry}{row.Size} {row.Region} {row.Wgt:4.1f}{row.Var1:9d}{row.Var2:10.2f}".ljust(98)
        + "0"
        for row in frame.itertuples()
    ]
    (folder / "turnover.asc").write_text("\n".join(lines) + "\n")
    for name in ("Tau_TestW.rda", "region2.hrc"):
        target = "turnover.rda" if name.endswith("rda") else name
        (folder / target).write_text(reference_file(f"tauargus/{name}").read_text())
    (folder / "release.toml").write_text(SPECIFICATION.format(more=more))
    return frame


@pytest.mark.spark
@pytest.mark.parametrize("more", [ACCEPTED, 'method = "suppression"'], ids=["adjusted", "suppressed"])
def test_fixed_width_records_with_metadata_of_tau_argus_are_protected_and_written_back(
    adjusted, tmp_path, more
):
    frame = written(tmp_path, more)
    content = adjusted(read_specification(tmp_path / "release.toml"))
    release, evidence = Path(content["release"]), Path(content["report"]).parent
    cells = pq.read_table(evidence / "cells.parquet").to_pandas()
    assert set(cells["code_Region"]) == {
        *(str(each) for each in range(1, 13)),
        "Nr",
        "Os",
        "Ws",
        "Zd",
        "Total",
    }
    part_of = parents_of(tmp_path / "region2.hrc")
    for row in cells.itertuples():
        region, size = frame["Region"].str.strip(), frame["Size"].str.strip()
        inside = (size == row.code_Size) | (row.code_Size == "Total")
        inside &= (
            (region == row.code_Region)
            | (region.map(part_of) == row.code_Region)
            | (row.code_Region == "Total")
        )
        amounts = np.sort(frame["Var2"][inside].to_numpy())[::-1]
        assert float(row.original) == pytest.approx(amounts.sum())
        top = np.concatenate([amounts, [0.0, 0.0]])[:2]
        assert row.sensitive == p_percent([top], [amounts.sum()], 15).sensitive[0]
    assert 0 < cells["sensitive"].sum() < len(cells)
    table = next((release / FOLDER).glob("*.tab")).read_text().splitlines()
    assert len(table) == len(cells)
    assert '"Region"' in next((release / FOLDER).glob("*.rda")).read_text()
    assert list((release / FOLDER).glob("*.hrc"))
    assert json.loads((release / "manifest.json").read_text())["cells"] == len(cells)


@pytest.mark.spark
def test_refusal_counts_lines_that_end_before_the_last_field(adjusted, tmp_path):
    written(tmp_path)
    path = tmp_path / "turnover.asc"
    path.write_text(path.read_text() + "84 34110\n")
    with pytest.raises(InputRejected, match=r"1 line\(s\) that end before the last field"):
        adjusted(read_specification(tmp_path / "release.toml"))
