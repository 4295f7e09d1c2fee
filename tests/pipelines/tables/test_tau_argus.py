"""Tests of tau-ARGUS files: a priori files before protection, and table files after it, equal our formats."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from microguard.pipelines.description.sdmx import sdmx_csv
from microguard.pipelines.tables.hst import read_hst
from microguard.pipelines.tables.tau_argus import FOLDER, same_cells, write_tau_argus
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.table import Table
from microguard.schemas.specification.tau_argus import parents_of

PARENTS = {"N1": "North", "N2": "North", "N2a": "N2", "@S": "South"}


def table() -> Table:
    return Table(value="turnover", tables=(("region",),), source="cells", total="T",
                 parents={"region": PARENTS}, contributors="firms", tau_argus=True)  # fmt: skip


def contents() -> dict[str, pa.Table]:
    codes = ["@S", "N1", "N2", "N2a", "North", "South", "T"]
    values = [Decimal(each).scaleb(-2) for each in (100, 25, 50, 50, 75, 100, 175)]
    return {"a.parquet": pa.table({"region": codes, "turnover": pa.array(values, pa.decimal128(18, 2))})}


def test_protected_table_is_written_as_cells_metadata_and_hierarchy(tmp_path: Path) -> None:
    write_tau_argus(tmp_path, contents(), table())
    assert (tmp_path / FOLDER / "a.tab").read_text().splitlines()[:2] == ["@S;1.00", "N1;0.25"]
    assert (tmp_path / FOLDER / "a.rda").read_text().split() == [
        "<SEPARATOR>", '";"', '"region"', "<RECODEABLE>", "<TOTCODE>", '"T"', "<HIERARCHICAL>",
        "<HIERCODELIST>", '"a-1.hrc"', "<HIERLEADSTRING>", '"#"', '"turnover"', "<NUMERIC>", "<DECIMALS>",
        "2",
    ]  # fmt: skip
    assert parents_of(tmp_path / FOLDER / "a-1.hrc", "#") == PARENTS


def test_audit_detects_a_changed_cell_file(tmp_path: Path) -> None:
    write_tau_argus(tmp_path, contents(), table())
    assert same_cells(tmp_path, contents(), table())
    path = tmp_path / FOLDER / "a.tab"
    path.write_text(path.read_text().replace("0.25", "0.26"))
    assert not same_cells(tmp_path, contents(), table())


def test_a_priori_lines_on_one_cell_are_merged(tmp_path: Path) -> None:
    (tmp_path / "known.hst").write_text("North;1;u\nNorth;1;pl;100;200\nNorth;1;C;3\nSouth;T;p\nSouth;1;s\n")
    rows = read_hst(tmp_path / "known.hst", ("region", "size"))
    assert rows.to_numpy().tolist() == [
        ["North", "1", "sensitive", "100", "200", "3"],
        ["South", "T", "fixed", "", "", ""],
        ["South", "1", "safe", "", "", ""],
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("North;1;q\n", "Line 1"),
        ("North;1;c\n", "Line 1"),
        ("North;u\n", "Line 1"),
        ("North;1;s;2\n", "Line 1"),
        ("North;1;s\nNorth;1;u\n", "Line 2 of table.a_priori contradicts"),
        ("North;1;s\nNorth;1;pl;1;2\n", "contradicts"),
    ],
)
def test_rejection_of_a_faulty_line_names_its_number(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "known.hst").write_text(text)
    with pytest.raises(InputRejected, match=message):
        read_hst(tmp_path / "known.hst", ("region", "size"))


def test_suppressed_cells_have_one_status_in_every_public_format(tmp_path: Path) -> None:
    status = ["suppressed", "suppressed", "published", "published"]
    values = pa.array([None, None, 3, 9], pa.int64())
    content = pa.table({"region": ["a", "b", "c", "T"], "turnover": values, "status": status})
    write_tau_argus(tmp_path, {"a.parquet": content}, table())
    sdmx = sdmx_csv(content, "flow", ["REGION"], suppressed=True).splitlines()
    status_of = {line.split(",")[-4]: line.split(",")[-2:] for line in sdmx[1:]}
    assert sdmx[0].endswith("OBS_VALUE,OBS_STATUS,CONF_STATUS")
    assert status_of["a"] == status_of["b"] == ["Q", "C"]
    assert status_of["c"] == ["A", "F"]
    assert (tmp_path / FOLDER / "a.tab").read_text().splitlines() == ["a;;U", "b;;U", "c;3;S", "T;9;S"]
    metadata = (tmp_path / FOLDER / "a.rda").read_text()
    assert '<SAFE> "S"' in metadata
    assert '<UNSAFE> "U"' in metadata
