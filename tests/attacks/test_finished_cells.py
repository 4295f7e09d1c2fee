"""Attack on finished cells combined with microdata of the same records.

The table adjusts the totals of few municipalities. Microdata of the same records, published under another
name, preserve the totals of their regions exactly. An attacker with both has the values that the table
protects. The control has fingerprints without amounts, as for cells that are never compared.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.publication.source_fingerprints.amount_fingerprint import (
    AmountFingerprint,
    amount_fingerprint,
    share_amounts,
)
from microguard.pipelines.publication.source_fingerprints.conflicts import refuse_conflicts
from microguard.pipelines.publication.source_fingerprints.fingerprint import salts_of
from microguard.pipelines.publication.source_fingerprints.source_fingerprint import SourceFingerprint
from microguard.pipelines.publication.source_fingerprints.totals import totals_of_cells, totals_of_records
from microguard.schemas.errors import GateRefused
from microguard.schemas.specification.read import build_specification
from microguard.schemas.specification.table import Table

from tests.pipelines.microdata import run
from tests.pipelines.microdata import specification as microdata
from tests.pipelines.publication.source_fingerprints.fingerprints import fingerprint_of
from tests.pipelines.publication.source_fingerprints.test_conflicts import A, Agency, B

KEY = bytes(range(32))
CODES = ["activity", "region"]


def firms(seed: int, municipalities: int = 42) -> pd.DataFrame:
    """Return firms with activity, municipality, turnover and weight."""
    random = np.random.default_rng(seed)
    count = 60 * municipalities
    return pd.DataFrame(
        {
            "activity": random.choice(list("ABCDEF"), count),
            "region": [f"M{each:03d}" for each in random.integers(0, municipalities, count)],
            "turnover": random.lognormal(4, 1.2, count).round(2),
            "weight": random.uniform(1, 9, count).round(1),
        }
    )


def cells(frame: pd.DataFrame, unit: float = 1, *, weighted: bool = False) -> pd.DataFrame:
    """Return the finished table of activity by municipality in a unit of measurement, including margins."""
    amounts = frame.assign(value=frame["turnover"] / unit * (frame["weight"] if weighted else 1))
    parts = [amounts]
    for columns in (["activity"], ["region"], CODES):
        parts.append(amounts.assign(**dict.fromkeys(columns, "Total")))
    return pd.concat(parts).groupby(CODES, as_index=False)["value"].sum().round(3)


def _by_code(frame: pd.DataFrame, columns: list[str], amounts: list[str]) -> AmountFingerprint:
    """Return the fingerprint of totals, computed here by pandas."""
    measures, codes, totals = [], [], []
    for i, name in enumerate(columns):
        for j, amount in enumerate(amounts):
            total = frame.groupby(name)[amount].sum()
            measures.append(np.full(len(total), i * len(amounts) + j))
            codes.append(pd.util.hash_array(total.index.to_numpy(object)).view(np.int64))
            totals.append(total.to_numpy())
    joined = [np.concatenate(each) for each in (measures, codes, totals)]
    return amount_fingerprint(*joined, salts_of(KEY))


def of_records(frame: pd.DataFrame) -> AmountFingerprint:
    """Return the fingerprint of microdata."""
    grossed = frame.assign(one=1.0, grossed=frame["turnover"] * frame["weight"])
    return _by_code(grossed, CODES, ["one", "turnover", "grossed"])


def of_cells(table: pd.DataFrame) -> AmountFingerprint:
    """Return the fingerprint of a finished table."""
    margins = [
        table[(table[name] != "Total") & (table[other] == "Total")] for name, other in (CODES, CODES[::-1])
    ]
    fingerprints = [_by_code(margin, [name], ["value"]) for margin, name in zip(margins, CODES, strict=True)]
    numbered = [replace(each, measures=each.measures + i) for i, each in enumerate(fingerprints)]
    return AmountFingerprint(*(np.concatenate([getattr(each, name) for each in numbered])
                          for name in ("measures", "codes", "totals")))  # fmt: skip


def releases(frame: pd.DataFrame, table: pd.DataFrame) -> dict[str, SourceFingerprint]:
    """Return the fingerprints of microdata and of a finished table."""
    records = fingerprint_of(frame[CODES])
    finished = SourceFingerprint(len(table), records.key, None, {}, of_cells(table))
    return {"records": replace(records, amounts=of_records(frame)), "table": finished}


@pytest.mark.parametrize("order", [("records", "table"), ("table", "records")], ids=lambda each: each[0])
@pytest.mark.parametrize(
    "table",
    [cells(firms(1)), cells(firms(1), 1000), cells(firms(1), weighted=True)],
    ids=["cells", "in thousands", "weighted"],
)
def test_finished_cells_and_microdata_of_the_same_records_are_refused_in_either_order(tmp_path, table, order):
    """The control has no fingerprint of cells and no amounts of records: neither publication is refused."""
    known = releases(firms(1), table)
    weak = {"records": replace(known["records"], amounts=None), "table": None}
    for number, fingerprints in enumerate((known, weak)):
        agency = Agency(tmp_path / str(number))
        agency.publish(A, fingerprints[order[0]], name="first", content=order[0])
        entry = agency.entry(B, fingerprints[order[1]], name="second", lake="other", content=order[1])
        if number:
            refuse_conflicts(entry, agency.areas("other"))
            continue
        with pytest.raises(GateRefused, match=A):
            refuse_conflicts(entry, agency.areas("other"))
        refuse_conflicts(replace(entry, successive="accept"), agency.areas("other"))


def test_cells_of_a_part_of_the_municipalities_match_and_cells_of_other_firms_do_not():
    frame = firms(1)
    some = cells(frame[frame["region"] < "M005"])
    assert share_amounts(of_cells(some), of_records(frame))
    assert share_amounts(of_records(frame), of_cells(some))
    for seed in range(2, 30):
        assert not share_amounts(of_cells(cells(firms(seed))), of_records(frame))
        assert not share_amounts(of_records(firms(seed)), of_records(frame))


@pytest.mark.long
def test_two_hundred_unrelated_sources_share_no_amounts():
    sources = [of_records(firms(seed)) for seed in range(200)]
    assert not any(share_amounts(sources[i], sources[i + 1]) for i in range(199))


def test_spark_and_pandas_compute_equal_common_amounts_of_records_and_cells(spark):
    frame, table = firms(3), cells(firms(3))
    chosen = Table(source="cells", value="value", tables=(tuple(CODES),))
    salts, every = salts_of(KEY), dict.fromkeys(CODES, 2**63 - 1)
    records = totals_of_records(spark.createDataFrame(frame), every, ["turnover"], "weight")
    finished = totals_of_cells(spark.createDataFrame(table), chosen)
    assert len(finished[0]) == 6 + 42 + 2  # the margins include the grand total
    assert share_amounts(amount_fingerprint(*finished, salts), amount_fingerprint(*records, salts))
    other = totals_of_records(spark.createDataFrame(firms(4)), every, ["turnover"], "weight")
    assert not share_amounts(amount_fingerprint(*finished, salts), amount_fingerprint(*other, salts))


def test_fingerprint_with_amounts_is_read_back_unchanged(tmp_path):
    for name, fingerprint in releases(firms(1), cells(firms(1))).items():
        fingerprint.write(tmp_path / name)
        read = SourceFingerprint.read(tmp_path / name)
        assert read is not None
        assert read.cells.keys() == fingerprint.cells.keys()
        assert share_amounts(read.amounts, fingerprint.amounts)
        assert len(read.amounts.codes) == len(fingerprint.amounts.codes)


@pytest.mark.long
@pytest.mark.parametrize("records_first", [True, False], ids=["records first", "cells first"])
def test_finished_cells_and_their_records_are_not_both_published(spark, adjusted, tmp_path, records_first):
    frame = firms(1, 6)
    (tmp_path / "data").mkdir()
    frame.to_parquet(tmp_path / "data" / "firms.parquet", index=False)
    contributors = cells(frame.assign(turnover=1.0))["value"].astype(int)
    cells(frame).assign(firms=contributors).to_parquet(tmp_path / "cells.parquet", index=False)
    numeric = {"role": "quasi_identifier", "kind": "numeric"}
    roles = {
        "region": {"role": "region"},
        "activity": {"role": "quasi_identifier", "kind": "nominal"},
        "turnover": numeric,
        "weight": {"role": "weight"},
    }
    table = {
        "source": "cells",
        "value": "value",
        "contributors": "firms",
        "tables": [CODES],
        "effort": "fast",
    }
    finished = build_specification(
        {
            "release": {"name": "municipalities", "k": 3},
            "input": {"path": "cells.parquet"},
            "variables": {
                **{name: {"role": "other"} for name in CODES},
                **{name: {"role": "other", "kind": "numeric"} for name in ("value", "firms")},
            },
            "table": table,
            "publish": {"path": "tables", "evidence": "evidence"},
        },
        tmp_path,
    )
    records = microdata(tmp_path, roles)
    steps = [lambda: run(spark, records), lambda: adjusted(finished)]
    first, second = steps if records_first else steps[::-1]
    first()
    with pytest.raises(GateRefused, match="published before, as 1 release"):
        second()
