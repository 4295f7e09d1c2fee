"""Tests of derived columns of published files: DuckDB equals Python, on whole and on broken files."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.audit.derived import contradictions
from microguard.pipelines.guarantees.queries import quiet_engine, show

EXPRESSIONS = {
    "lnum": "log(num)",
    "ten": "log10(num)",
    "root": "sqrt(num - 5)",
    "size": "abs(num - 5) + exp(num / 10)",
    "share": "pay / num",
    "total": "-num + 2.5 * pay",
    "whole": "pay / 7",
    "single": "pay / 3",
    "cents": "pay / 9",
}
TYPES = {"whole": pa.int64(), "single": pa.float32(), "cents": pa.decimal128(12, 2)}


def computed(num, pay):
    """Evaluate the expressions in Python; return None without a finite number."""
    return {
        "lnum": math.log(num) if num > 0 else None,
        "ten": math.log10(num) if num > 0 else None,
        "root": math.sqrt(num - 5) if num >= 5 else None,
        "size": abs(num - 5) + math.exp(num / 10),
        "share": pay / num if num else None,
        "total": -num + 2.5 * pay,
        "whole": int(np.rint(pay / 7)),
        "single": pay / 3,
        "cents": round(Decimal(pay) / 9, 2),
    }


def table():
    rng = np.random.default_rng(5)
    num, pay = rng.integers(0, 40, 200).tolist(), rng.lognormal(6, 1, 200).round(2).tolist()
    columns = {name: [computed(*row)[name] for row in zip(num, pay, strict=True)] for name in EXPRESSIONS}
    arrays = {name: pa.array(values, TYPES.get(name, pa.float64())) for name, values in columns.items()}
    return pa.table({"num": pa.array(num, pa.int32()), "pay": pay} | arrays)


def counted(records, tmp_path):
    pq.write_table(records, tmp_path / "part-00000.parquet")
    columns = [
        {"name": entry.name, "type": str(entry.type)}
        | ({"derived": EXPRESSIONS[entry.name]} if entry.name in EXPRESSIONS else {})
        for entry in records.schema
    ]
    keys = {name: f"c{i}" for i, name in enumerate(records.column_names)}
    with quiet_engine() as engine:
        show(engine, "microdata", [tmp_path / "part-00000.parquet"], list(keys.values()))
        return contradictions(engine, columns, keys)


def test_derived_columns_of_a_whole_file_have_no_contradiction(tmp_path):
    assert counted(table(), tmp_path) == dict.fromkeys(EXPRESSIONS, 0)


@pytest.mark.parametrize("name", EXPRESSIONS)
@pytest.mark.parametrize("broken", [lambda value: value + 2, lambda value: None])
def test_contradictions_counts_altered_and_removed_values_of_a_derived_column(tmp_path, name, broken):
    records = table()
    values = records[name].to_pylist()
    place = next(i for i, value in enumerate(values) if value is not None)
    changed = broken(values[place])
    values[place] = int(changed) if name == "whole" and changed is not None else changed
    array = pa.array(values, records.schema.field(name).type)
    records = records.set_column(records.column_names.index(name), name, array)
    assert counted(records, tmp_path) == dict.fromkeys(EXPRESSIONS, 0) | {name: 1}


def test_contradictions_counts_a_changed_term_in_every_column_that_is_computed_from_it(tmp_path):
    records = table()
    pay = records["pay"].to_pylist()
    records = records.set_column(1, "pay", pa.array([pay[0] + 100, *pay[1:]]))
    found = counted(records, tmp_path)
    assert {name for name, count in found.items() if count} == {"share", "total", "whole", "single", "cents"}
