"""Tests of cell keys: sums of unit keys for any partitions; units without a single key are refused."""

from __future__ import annotations

import hashlib
import hmac

import numpy as np
import pytest
from microguard.pipelines.intake.read import read
from microguard.pipelines.intake.unit_key import unit_key
from microguard.pipelines.intake.validate import validate
from microguard.pipelines.tables.cell_keys.record_keys import keys_of_cells
from microguard.pipelines.tables.cells.microdata import cells_of_microdata
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.table_input import as_input
from microguard.sdc.cta.cell_keys.noise_table import KEY_SPAN

from tests.pipelines.turnover import records, specification

SECRET = bytes(range(32))
NOISY = {"kind": "frequency", "value": None, "dominance": None, "decimals": None, "effort": None} | {
    "method": "cell_key"
}


def keyed(spark, folder, frame, partitions=2):
    chosen = specification(folder, frame, {"firm": {"role": "unit"}}, **NOISY)
    reader = as_input(chosen)
    kept = validate(read(spark, reader), reader).frame.repartition(partitions)
    cells = cells_of_microdata(kept, chosen)
    return cells, keys_of_cells(kept, chosen, cells, SECRET)


def test_cell_key_is_the_sum_of_the_keys_of_its_units(spark, tmp_path):
    frame = records(count=40).assign(firm=[f"f{number}" for number in range(40)])
    frame = frame[(frame["a21"] != "A") | (frame["region"] != "north")].reset_index(drop=True)
    cells, keys = keyed(spark, tmp_path, frame)
    derived = hmac.new(SECRET, b"keys of cells", hashlib.sha256).digest()
    own = np.array([int.from_bytes(unit_key(firm, derived)[:4], "big") for firm in frame["firm"]])
    for codes, key in zip(cells.codes.to_dict("records"), keys, strict=True):
        inside = np.ones(len(frame), dtype=bool)
        for name, code in codes.items():
            inside &= (frame[name] == code).to_numpy() | (code == "Total")
        assert int(key) == int(own[inside].sum()) % KEY_SPAN
    assert np.any(cells.units == 0)
    _, again = keyed(spark, tmp_path, frame.iloc[::-1], partitions=5)
    assert np.array_equal(keys, again)


def test_unit_with_several_records_or_without_an_identifier_is_refused(spark, tmp_path):
    with pytest.raises(InputRejected, match="one record for each firm"):
        keyed(spark, tmp_path, records(count=40))
    frame = records(count=40).assign(firm=[None, *(f"f{number}" for number in range(39))])
    with pytest.raises(InputRejected, match="firm"):
        keyed(spark, tmp_path, frame)


def test_unit_key_does_not_depend_on_its_column_type(spark, tmp_path):
    frame = records(count=40).assign(firm=range(40))
    expected = keyed(spark, tmp_path, frame)[1]
    for kind in ("str", "float64"):
        assert np.array_equal(keyed(spark, tmp_path, frame.astype({"firm": kind}))[1], expected)
