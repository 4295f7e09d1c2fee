"""Tests that tau-ARGUS metadata complete a specification, whose keys take precedence."""

from __future__ import annotations

from pathlib import Path

import pytest
from microguard.schemas.errors import SpecificationError
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.read import read_specification
from microguard.schemas.specification.tau_argus import parents_of

METADATA = """<SEPARATOR> ";"
<SAFE> s
<UNSAFE> u
<PROTECT> p
Region
    <RECODEABLE>
    <TOTCODE> "T"
    <CODELIST> "labels of regions.cdl"
    <HIERARCHICAL>
    <HIERCODELIST> "C:\\argus\\region.hrc"
    <HIERLEADSTRING> "@"
"Size class" "9"
    <RECODABLE>
    <TOTCODE> "T"
Turnover
    <NUMERIC>
    <DECIMALS> 1
Firms
    <FREQUENCY>
Top1
    <MAXSCORE>
Top2
    <MAXSCORE>
Price
    <NUMERIC> <COSTVAR>
Flag
    <STATUS>
"""
HIERARCHY = "North\n@N1\n@N2\n@@N2a\n\nSouth\n@S1\n"
SPECIFICATION = """
[release]
name = "turnover"
k = 3
[input]
path = "turnover.tab"
metadata = "turnover.rda"
[publish]
path = "lake"
evidence = "evidence"
"""


def specification(folder: Path, metadata: str = METADATA, more: str = "", *overrides: str) -> Specification:
    (folder / "region.hrc").write_text(HIERARCHY)
    (folder / "turnover.rda").write_text(metadata)
    (folder / "release.toml").write_text(SPECIFICATION + more)
    return read_specification(folder / "release.toml", overrides)


def test_every_tau_argus_keyword_becomes_a_key(tmp_path: Path) -> None:
    parsed = specification(tmp_path)
    assert parsed.table is not None
    assert (parsed.input.format, parsed.input.delimiter) == ("csv", ";")
    fields = ("Region", "Size class", "Turnover", "Firms", "Top1", "Top2", "Price", "Flag")
    assert parsed.input.columns == fields == tuple(parsed.variables)
    table = parsed.table
    assert table.tables == (("Region", "Size class"),)
    assert (table.source, table.kind, table.value, table.total, table.digits) == (
        "cells", "magnitude", "Turnover", "T", 1)  # fmt: skip
    assert (table.contributors, table.largest, table.costs) == ("Firms", ("Top1", "Top2"), "Price")
    assert table.parents == {"Region": {"N1": "North", "N2": "North", "N2a": "N2", "S1": "South"}}
    assert (table.status, table.statuses) == (
        "Flag", {"E": "empty", "s": "safe", "u": "sensitive", "p": "fixed"})  # fmt: skip
    assert table.tau_argus


def test_specification_overrides_the_tau_argus_metadata(tmp_path: Path) -> None:
    more = '[table]\ntau_argus = false\ndecimals = 0\n[variables]\nRegion = { role = "region" }\n'
    parsed = specification(tmp_path, METADATA, more, "table.total=all")
    assert parsed.table is not None
    assert (parsed.table.tau_argus, parsed.table.digits, parsed.table.total) == (False, 0, "all")
    assert parsed.variables["Region"].role == "region"


def test_metadata_with_only_frequencies_describe_a_table_of_counts(tmp_path: Path) -> None:
    parsed = specification(tmp_path, "Region\n <RECODEABLE>\nFirms\n <FREQUENCY>\n")
    assert parsed.table is not None
    assert (parsed.table.kind, parsed.table.value, parsed.table.total) == ("frequency", "Firms", "Total")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "    <MAXSCORE>\nTop2",
            "    <WEIGHT>\nTop2",
            "keywords of records .Top1. and of cells .Firms, Top2, Price, Flag.",
        ),
        ('<HIERCODELIST> "C:\\argus\\region.hrc"', "", "without a <HIERCODELIST>"),
        ("Flag\n    <STATUS>\n", "Flag\n", "does not state the content of Flag"),
        ("region.hrc", "none.hrc", "none.hrc of input.metadata cannot be read"),
        ("<NUMERIC> <COSTVAR>", "<FREQUENCY>", "2 fields for table.contributors"),
    ],
)
def test_refusal_names_unsupported_metadata_of_tau_argus(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert METADATA.count(old) == 1
    with pytest.raises(SpecificationError, match=said):
        specification(tmp_path, METADATA.replace(old, new))


@pytest.mark.parametrize("text", ["A\n@@B\n", "A\n@A\n", "@A\n", "A\n@\n"])
def test_refusal_of_a_hierarchy_file_that_is_no_tree_names_the_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "odd.hrc").write_text(text)
    with pytest.raises(SpecificationError, match=r"in line \d"):
        parents_of(tmp_path / "odd.hrc")


def test_metadata_have_the_defaults_of_tau_argus(tmp_path: Path) -> None:
    text = METADATA.replace("<SAFE> s\n<UNSAFE> u\n<PROTECT> p\n", "").replace("    <DECIMALS> 1\n", "")
    text = text.replace('<TOTCODE> "T"\nTurnover', '<TOTCODE> "all"\n    <DISTANCE> 1 2 4\nTurnover')
    text = text.replace("<NUMERIC> <COSTVAR>", "<NUMERIC> <SHADOW>")
    (tmp_path / "turnover.tab").write_text("T;all;7;3;2;1;7,5;S\n")
    parsed = specification(tmp_path, text)
    assert parsed.table is not None
    assert parsed.table.statuses == {"E": "empty", "S": "safe", "U": "sensitive", "P": "fixed"}
    assert (parsed.table.digits, parsed.table.shadow, parsed.input.decimal) == (0, "Price", ",")
    assert (parsed.table.total, parsed.table.totals) == ("T", {"Size class": "all"})
