"""Tests of tau-ARGUS metadata of microdata: they set positions, variables and the table."""

from __future__ import annotations

from pathlib import Path

import pytest
from microguard.schemas.errors import SpecificationError
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.read import read_specification
from microguard.schemas.specification.table_input import table_of

METADATA = """Year 1  2 99
  <RECODEABLE>
  <DISTANCE>  1  2  3  4  5
IndustryCode 4  5 99999
  <RECODEABLE>
  <HIERARCHICAL>
  <HIERLEVELS>  3 1 1 0 0
Region 12  2 99
  <RECODEABLE>
  <CODELIST> "region.cdl"
  <HIERARCHICAL>
  <HIERCODELIST> "region.hrc"
  <HIERLEADSTRING> "@"
Wgt 15  4 9999
  <NUMERIC>
  <DECIMALS>  1
  <WEIGHT>
Var1 19  9 999999999
  <NUMERIC>
Var2 28  10 9999999999
  <NUMERIC>
  <DECIMALS>  2
Request 99  1
  <REQUEST>  "1" "2"
Group 101 4
  <HOLDING>
"""
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
"""


def read(folder: Path, table: str, metadata: str = METADATA) -> Specification:
    (folder / "region.hrc").write_text("Nr\n@ 1\n@ 2\nOs\n@ 4\n")
    (folder / "turnover.rda").write_text(metadata)
    (folder / "turnover.asc").write_text("84 34110  1  1   2.2     9272     28.26" + " " * 60 + "0 g1  \n")
    (folder / "release.toml").write_text(SPECIFICATION + table)
    return read_specification(folder / "release.toml")


def test_fixed_width_fields_become_positions_variables_and_nested_codes(tmp_path: Path) -> None:
    tables = 'value = "Var2"\ntables = [["IndustryCode", "Region"]]'
    specification = read(tmp_path, tables)
    table = table_of(specification)
    assert specification.input.positions["Wgt"] == (15, 4)
    assert specification.input.format == "csv"
    assert specification.weight == "Wgt"
    assert specification.variables["Var1"].missing == (999999999,)
    assert specification.variables["Year"].missing == ()
    assert (table.source, table.tau_argus, table.weighted) == ("microdata", True, False)
    assert table.parents == {"Region": {"1": "Nr", "2": "Nr", "4": "Os"}}
    assert table.code_widths == {"IndustryCode": (3, 4, 5)}
    assert (table.holding, table.request) == ("Group", None)


def test_hierarchies_of_dimensions_without_a_table_are_omitted(tmp_path: Path) -> None:
    table = table_of(read(tmp_path, 'value = "Var1"\ntables = [["Year"]]'))
    assert (dict(table.parents), dict(table.code_widths)) == ({}, {})


def test_requests_for_protection_need_their_shares_in_the_specification(tmp_path: Path) -> None:
    tables = 'value = "Var2"\ntables = [["Region"]]\nrequests = { "1" = 70, "2" = 85 }'
    table = table_of(read(tmp_path, tables))
    assert (table.request, dict(table.requests)) == ("Request", {"1": 70, "2": 85})
    assert table.estimable_within is None


def test_microdata_with_a_delimiter_have_columns(tmp_path: Path) -> None:
    fields = '<SEPARATOR> ","\nYear 2 99\n<RECODEABLE>\nWgt 4\n<WEIGHT>\nVar1 9 999\n<NUMERIC>\n'
    specification = read(tmp_path, 'tables = [["Year"]]', fields)
    assert specification.input.columns == ("Year", "Wgt", "Var1")
    assert table_of(specification).value == "Var1"
    assert specification.variables["Var1"].missing == (999,)


@pytest.mark.parametrize(
    ("metadata", "match"),
    [
        (METADATA.replace("Var1 19  9", "Var1 19"), "position|width of Var1"),
        (METADATA.replace("<HIERLEVELS>  3 1 1 0 0", "<HIERLEVELS>  3 a"), "HIERLEVELS.*no whole number"),
    ],
)
def test_refusal_of_unreadable_metadata_names_the_field(tmp_path: Path, metadata, match) -> None:
    with pytest.raises(SpecificationError, match=match):
        read(tmp_path, 'value = "Var2"\ntables = [["IndustryCode"]]', metadata.replace("999999999\n", "\n"))
