"""Tests that the description of a release agrees with its files and adds nothing."""

import json
import math
import re
from dataclasses import replace

import frictionless
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.pipelines.audit import description
from microguard.pipelines.audit.release import audit
from microguard.pipelines.description.describe import describe
from microguard.pipelines.description.recodes import recode_text
from microguard.pipelines.description.statistics import MOST_VALUES, column_statistics
from microguard.pipelines.engine.files import checksum

ID = "a" * 32
PARTS = (
    pd.DataFrame({"region": ["n"] * 3, "income": [5.0, 5.0, 5.0], "weight": [1.0, 2.0, 1.0]}),
    pd.DataFrame({"region": ["s<b>", "s<b>", None], "income": [7.0, 7.0, 7.0], "weight": [2.0, 2.0, 2.0]}),
)
ROLES = {"region": "other", "income": "quasi_identifier", "weight": "weight"}


def manifest_of(folder):
    schema = pq.read_schema(folder / "microdata" / "part-00000.parquet")
    group = {"name": "all", "variables": ["income"], "with_region": [], "smallest_class": 3}
    return {
        "release_id": ID,
        "name": "Town of Köln",
        "software": {"name": "microguard", "version": "1"},
        "guarantee": {"k": 3, "unit": "record", "groups": [group | {"classes": 2, "median_class": 3.0}]},
        "limits": ["Not everything."],
        "method": {"name": "microaggregation"},
        "recodes": [{"variable": "income", "top_code": 9.0}],
        "records": 6,
        "columns": [
            {"name": e.name, "type": str(e.type), "role": ROLES[e.name], "kind": None, "protected": False}
            for e in schema
        ],
        "tables": [{"file": "tables/001_income.parquet", "variables": ["income"]}],
        "disclosed": {"information_loss": 0.12},
    }


@pytest.fixture
def release(tmp_path):
    """Return a release folder with two record files, a table, a manifest and its description."""
    folder = tmp_path / ID
    (folder / "microdata").mkdir(parents=True)
    (folder / "tables").mkdir()
    for number, part in enumerate(PARTS):
        table = pa.Table.from_pandas(part, preserve_index=False).replace_schema_metadata()
        pq.write_table(table, folder / "microdata" / f"part-{number:05d}.parquet")
    cells = pa.table({"income": [5.0, 7.0], "frequency": [3, 3]})
    pq.write_table(cells, folder / "tables" / "001_income.parquet")
    publish(folder)
    return folder


def publish(folder):
    data = [path for path in sorted(folder.rglob("*")) if path.suffix == ".parquet"]
    checksums = {path.relative_to(folder).as_posix(): checksum(path) for path in data}
    manifest = manifest_of(folder)
    describe(folder, manifest, checksums)
    seal(folder, manifest)


def seal(folder, manifest):
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != "manifest.json"]
    files = {
        path.relative_to(folder).as_posix(): {"sha256": checksum(path), "bytes": path.stat().st_size}
        for path in paths
    }
    (folder / "manifest.json").write_text(json.dumps(manifest | {"files": files}))


def package_of(folder):
    return json.loads((folder / "datapackage.json").read_text())


def test_public_page_shows_statistics_guarantee_and_limits(release):
    page = (release / "report.html").read_text()
    for text in (
        "Town of Köln", "3 records", "Not everything.", "6 records", "values above 9 are 9",
        "information loss", "0.12", "s&lt;b&gt;", "5 values, 1 missing", "weighted mean", "quasi-identifier",
        "from at least 2 others",
    ):  # fmt: skip
        assert text in page.replace("<strong>", "").replace("</strong>", "")
    assert "<td>5.0</td><td class=n>3</td>" in page
    assert "s<b>" not in page
    assert not re.search(r"https?://|<script|<link", page)


def test_public_page_shows_lists_and_large_totals_as_a_reader_writes_them():
    from microguard.pipelines.description.public_page import _number, _shown

    assert _shown(["outsider", "pair"]) == "outsider, pair"
    assert _shown(2) == "2"
    plain = [
        _number(value).replace("\N{NARROW NO-BREAK SPACE}", " ") for value in (323586675.0, 40.102, 1e-7)
    ]
    assert plain == ["323 587 000", "40.102", "1e-07"]


def test_public_page_shows_no_mean_of_codes(release):
    from microguard.pipelines.description.public_page import public_page

    files = sorted((release / "microdata").glob("*.parquet"))
    statistics = [column_statistics(files, name) for name in ("region", "income", "weight")]
    manifest = manifest_of(release)
    statistics[1] = replace(statistics[1], frequencies=(("5", 3), ("7", 3)))  # as of whole numbers
    assert public_page(release, manifest, statistics).count(">mean<") == 2
    manifest["columns"] = [column | {"kind": "nominal"} for column in manifest["columns"]]
    page = public_page(release, manifest, statistics)
    assert page.count(">mean<") == 1
    assert '<td>5</td><td class="n">3</td>' in page


def test_descriptor_follows_the_data_package_specification(release):
    """Check the rules of Data Package 1.0 and Table Schema 1.0 that tools rely on."""
    package = package_of(release)
    assert re.fullmatch(r"[a-z0-9._-]+", package["name"])
    names = [resource["name"] for resource in package["resources"]]
    assert len(set(names)) == len(names) == 5
    for resource in package["resources"]:
        assert re.fullmatch(r"[a-z0-9._-]+", resource["name"])
        assert not resource["path"].startswith("/")
        assert ".." not in resource["path"]
        assert resource["hash"] == f"sha256:{checksum(release / resource['path'])}"
        fields = resource.get("schema", {"fields": []})["fields"]
        if resource["format"] == "parquet":
            assert [each["name"] for each in fields] == pq.read_schema(release / resource["path"]).names
    by_name = {each["name"]: each for each in package["resources"][0]["schema"]["fields"]}
    assert {name: each["type"] for name, each in by_name.items()} == {
        "region": "string", "income": "number", "weight": "number",
    }  # fmt: skip
    assert by_name["region"]["constraints"] == {"enum": ["n", "s<b>"]}
    assert by_name["income"]["statistics"]["weighted_total"] == 5 * 4 + 7 * 6


def test_frictionless_validates_every_described_file(release, monkeypatch):
    monkeypatch.chdir(release)  # frictionless refuses paths outside its folder
    package = frictionless.Package("datapackage.json")
    assert package.validate().flatten(["type", "note"]) == []
    rows = [
        row
        for part in ("00000", "00001")
        for row in package.get_resource(f"microdata-part-{part}").read_rows()
    ]
    expected = pd.concat(PARTS).astype(object)
    assert [dict(row) for row in rows] == expected.where(expected.notna(), None).to_dict("records")
    cells = package.get_resource("sdmx-001_income.csv").read_rows()
    assert [(row["INCOME"], row["OBS_VALUE"]) for row in cells] == [("5$2E0", 3), ("7$2E0", 3)]


def test_column_statistics_cover_all_files(release):
    files = sorted((release / "microdata").glob("*.parquet"))
    statistics = column_statistics(files, "income", weight="weight")
    both = pd.concat(PARTS)
    assert (statistics.values, statistics.missing) == (6, 0)
    assert statistics.numbers.mean == both["income"].mean()
    assert math.isclose(statistics.numbers.deviation, both["income"].std())
    assert statistics.numbers.weighted_mean == np.average(both["income"], weights=both["weight"])
    assert column_statistics(files, "region").frequencies == (("n", 3), ("s<b>", 2))
    assert column_statistics(files, "region", listed=False).frequencies is None


@given(st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), min_size=1, max_size=30), st.integers(1, 4))
def test_column_statistics_equal_pandas_for_any_split_into_files(tmp_path_factory, values, parts):
    folder = tmp_path_factory.mktemp("cut")
    for number, part in enumerate(np.array_split(np.arange(len(values)), parts)):
        table = pa.table({"x": pa.array([values[i] for i in part], pa.float64())})
        pq.write_table(table, folder / f"{number}.parquet")
    statistics = column_statistics(sorted(folder.glob("*.parquet")), "x")
    there = pd.Series([value for value in values if value is not None], dtype=float)
    assert statistics.values == len(there)
    assert statistics.missing == len(values) - len(there)
    if len(there):
        assert (statistics.numbers.minimum, statistics.numbers.maximum) == (there.min(), there.max())
        assert math.isclose(statistics.numbers.mean, there.mean(), abs_tol=1e-6)
        quartiles = np.quantile(there, [0.25, 0.5, 0.75], method="inverted_cdf")
        assert statistics.numbers.quartiles == tuple(quartiles)


def test_column_statistics_list_no_values_of_a_column_with_many_distinct_values(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": [f"CANARY{i}" for i in range(MOST_VALUES + 1)]}), path)
    assert column_statistics([path], "text").frequencies is None


def test_describe_writes_identical_bytes_for_the_same_release(release):
    names = ("report.html", "datapackage.json", "sdmx/001_income.csv")
    before = [(release / name).read_bytes() for name in names]
    publish(release)
    assert [(release / name).read_bytes() for name in names] == before


@pytest.mark.parametrize(
    ("name", "text", "forged", "found"),
    [
        ("001_income.csv", ",3,A,F", ",4,A,F", "cells of an SDMX-CSV file differ"),
        ("001_income.csv", "dataflow", "its mean is 6.1", "cells of an SDMX-CSV file differ"),
        ("001_income.csv", "ACTION", "mean 6.1", "cells of an SDMX-CSV file differ"),
        ("001_income.csv", "(1.0)", "(6.1)", "cells of an SDMX-CSV file differ"),
        ("structure.xml", '<str:Code id="7', '<str:Code id="9', "names a code differently"),
        (
            "structure.xml",
            "</str:Codelist>",
            '<str:Code id="9"><com:Name>9</com:Name></str:Code></str:Codelist>',
            "other codes than the tables",
        ),
    ],
)
def test_audit_detects_a_changed_sdmx_file(release, name, text, forged, found):
    path = release / "sdmx" / name
    assert text in path.read_text()
    path.write_text(path.read_text().replace(text, forged, 1))
    package = package_of(release)
    (resource,) = [each for each in package["resources"] if each["path"] == f"sdmx/{name}"]
    resource |= {"hash": f"sha256:{checksum(path)}", "bytes": path.stat().st_size}
    (release / "datapackage.json").write_text(json.dumps(package))
    seal(release, manifest_of(release))
    (failure,) = audit(release).failures()
    assert found in failure


def test_audit_accepts_a_correct_description_and_detects_every_fault(release):
    assert audit(release).passed, audit(release).failures()
    assert {"description", "statistics"} <= {finding.check for finding in audit(release).findings}
    sound = package_of(release)
    for change, check in (
        (lambda p: p.update(id="b" * 32), "description"),
        (lambda p: p["resources"].pop(), "description"),
        (lambda p: p["resources"][0]["schema"]["fields"].reverse(), "description"),
        (lambda p: p["resources"][0]["schema"]["fields"][1]["statistics"].update(mean=6.1), "statistics"),
    ):
        package = json.loads(json.dumps(sound))
        change(package)
        (release / "datapackage.json").write_text(json.dumps(package))
        seal(release, manifest_of(release))
        assert [f.check for f in audit(release).findings if not f.passed] == [check]
    (release / "datapackage.json").write_text(json.dumps(sound))
    (release / "report.html").write_text(f'<img src="//elsewhere/{ID}">')
    seal(release, manifest_of(release))
    assert description.faults(release, json.loads((release / "manifest.json").read_text())) == [
        "the page loads an external resource"
    ]


def test_recode_text_describes_every_recode():
    assert recode_text({"variable": "a", "missing": [97, 99], "top_code": 250000.0}) == (
        "97, 99 count as missing; values above 250000 are 250000"
    )
    assert recode_text({"variable": "a", "hierarchy": "nace.csv", "level": 2}) == (
        "codes of the hierarchy nace.csv; published at level 2"
    )
