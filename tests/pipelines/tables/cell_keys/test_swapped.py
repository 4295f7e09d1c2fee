"""Tests of swapping with cell keys in one specification: noisy counts of the swapped records."""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path

import numpy as np
import pytest
from microguard.pipelines.audit.release import audit
from microguard.pipelines.intake.unit_key import unit_key
from microguard.pipelines.publication.key import KEY_BYTES
from microguard.pipelines.tables.cell_keys.noise import noise_table
from microguard.schemas.errors import SpecificationError
from microguard.sdc.cta.cell_keys.noise_table import KEY_SPAN

from tests.pipelines.methods.test_swapping import ROLES, census, swapped
from tests.pipelines.microdata import specification
from tests.pipelines.published_tables import tables

KEY = "5a" * KEY_BYTES
TABLE = {
    "kind": "frequency",
    "tables": [["ward", "sex"], ["region", "age"]],
    "hierarchies": [["region", "ward"]],
    "method": "cell_key",
    "swapped": True,
    "quality": {"max_posterior": 1.0},
}
METHOD = {
    "name": "swapping",
    "effort": "standard",
    "parameters": {"geography": ["region", "ward"], "rate": 0.2},
}


def spec_of(folder, table=TABLE, method=METHOD):
    roles = ROLES | {"person": {"role": "unit"}}
    return specification(folder, roles, method=method, table=table)


@pytest.mark.spark
def test_counts_of_swapped_households_are_published_with_noise(adjusted, spark, tmp_path):
    before = census()
    before["person"] = [f"p{number}" for number in range(len(before))]
    before.to_parquet(tmp_path / "data")
    spec = spec_of(tmp_path)
    content = adjusted(spec)
    after = swapped(spark, spec, spark.createDataFrame(before))
    assert (after["ward"] != before["ward"]).mean() > 0.1
    derived = hmac.new(KEY.encode(), b"keys of cells", hashlib.sha256).digest()
    keys = np.array([int.from_bytes(unit_key(each, derived)[:4], "big") for each in before["person"]])
    noise, cells, other = noise_table(spec), 0, 0
    for frame in tables(content):
        for row in frame.to_dict("records"):
            codes = {n: c for n, c in row.items() if n != "frequency" and c != "Total"}
            inside, original = (
                np.logical_and.reduce(
                    [np.ones(len(f), bool), *(f[n].to_numpy() == c for n, c in codes.items())]
                )
                for f in (after, before)
            )
            key = np.array([keys[inside].sum() % KEY_SPAN], np.uint64)
            assert row["frequency"] == noise.perturb(np.array([inside.sum()]), key)[0]
            cells, other = cells + 1, other + (inside.sum() != original.sum())
    assert cells > 50
    assert other > 10, "the records behind the counts were swapped"
    release = Path(content["release"])
    assert audit(release).passed
    manifest = json.loads((release / "manifest.json").read_text())
    assert any("exchanged their area" in limit for limit in manifest["limits"])


def test_swapped_counts_need_swapping_and_cell_keys(tmp_path):
    with pytest.raises(SpecificationError, match=r"\[method\] name.*swapping, because table.swapped"):
        spec_of(tmp_path, method={"name": "microaggregation"})
    with pytest.raises(SpecificationError, match=r"swapped.*only with cell_key"):
        spec_of(tmp_path, table=TABLE | {"method": "rounding", "base": 5})


def test_swapped_tables_refuse_keys_that_would_exchange_other_units(tmp_path):
    records = {name: role for name, role in ROLES.items() if name != "home"} | {"person": {"role": "unit"}}
    with pytest.raises(SpecificationError, match=r"\[table\] swapped.*a variable of role household"):
        specification(tmp_path, records, method=METHOD, table=TABLE)
    with pytest.raises(SpecificationError, match=r"\[missing\] max_rejected.*0 with table.swapped"):
        specification(
            tmp_path, ROLES | {"person": {"role": "unit"}}, method=METHOD, table=TABLE,
            missing={"max_rejected": 3},
        )  # fmt: skip
