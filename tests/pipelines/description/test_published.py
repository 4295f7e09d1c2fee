"""Tests that the description of a release depends only on its public files and manifest."""

import json
import re
import shutil
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from microguard.pipelines import start_job
from microguard.pipelines.adjust import adjust
from microguard.pipelines.audit.release import audit
from microguard.pipelines.description.describe import describe
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.evidence.evidence import read_evidence
from microguard.pipelines.evidence.page import Page
from microguard.pipelines.measures.registry import measures_of

from tests.browser import browser, look
from tests.pipelines.microdata import ROLES, persons, run, specification
from tests.pipelines.turnover import records
from tests.pipelines.turnover import specification as of_table

pytestmark = pytest.mark.spark


def described_anew(release, folder):
    """Describe a copy of the public files in another folder; return the bytes of the files by name."""
    shutil.copytree(release, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    files = manifest.pop("files")
    for name in files:
        if not name.endswith(".parquet"):
            (folder / name).unlink()
    data = {name: file["sha256"] for name, file in files.items() if name.endswith(".parquet")}
    names = describe(folder, manifest, data)
    assert set(names) | set(data) == set(files)
    return {name: (folder / name).read_bytes() for name in names}


def as_published(release):
    """Return the bytes of the description files of the release by name."""
    paths = [path for path in release.rglob("*") if path.is_file() and path.suffix != ".parquet"]
    read = {path.relative_to(release).as_posix(): path.read_bytes() for path in paths}
    read.pop("manifest.json")
    return read


@pytest.fixture(scope="module")
def records_released(spark, tmp_path_factory):
    """Return the result of a run, its areas, and incomes that only published files may contain."""
    folder = tmp_path_factory.mktemp("records")
    original = persons(90)
    secret = 770_000_000 + np.random.default_rng(2).choice(10_000_000, len(original), replace=False)
    original.assign(income=secret.astype(float)).to_parquet(folder / "data", index=False)
    income = ROLES["income"] | {"top_code": 779_000_000, "round_to": 1}
    spec = specification(
        folder,
        ROLES | {"income": income},
        method={"representative": "mean"},
        publish={"disclose": ["information_loss"]},
    )
    return *run(spark, spec), secret


@pytest.fixture(scope="module")
def table_released(spark, tmp_path_factory):
    """Return the folders of the release and of the evidence of an adjusted table."""
    folder = tmp_path_factory.mktemp("table")

    @contextmanager
    def shared(private, master, input_path, *, clustering):
        yield spark

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(start_job, "session", shared)
        content = adjust(of_table(folder, records()), progress=Progress(quiet=True)).content
    return folder / "lake" / content["release_id"], Path(content["report"]).parent


def test_describe_of_records_depends_only_on_public_files(records_released, tmp_path):
    answer, areas, secret = records_released
    release = areas.public.release(areas.public.current())
    assert described_anew(release, tmp_path / "copy") == as_published(release)
    assert audit(release).passed, audit(release).failures()
    texts = "".join(path.read_text() for path in release.rglob("*.*") if path.suffix != ".parquet")
    digits = re.sub(r"(?<=\d)[\s,](?=\d)", "", texts)
    published = set(map(str, secret[secret >= 779_000_000])) | {"779000000"}
    assert not [each for each in map(str, secret) if each in digits and each not in published]
    assert "CANARY" not in texts
    assert "information_loss" in json.loads((release / "manifest.json").read_text())["disclosed"]
    quality = json.loads((areas.record(areas.public.current()) / "quality.json").read_text())
    for measured in (quality["loss"]["all"]["sse"], quality["moments"]["age"]["variance_before"]):
        assert f"{measured:.6g}" not in texts
    recoded = "values above 779000000 are 779000000"
    for page in (release / "report.html", areas.record(areas.public.current()) / "report.html"):
        assert recoded in page.read_text()
    assert answer.as_json()["release_id"] in (release / "report.html").read_text()


def test_describe_of_a_table_depends_only_on_public_files(table_released, tmp_path):
    release, _ = table_released
    assert described_anew(release, tmp_path / "copy") == as_published(release)
    assert audit(release).passed, audit(release).failures()
    page = (release / "report.html").read_text()
    assert "Any value may differ from the true one" in page
    assert '<th scope="col" class=n>turnover</th>' in page
    package = json.loads((release / "datapackage.json").read_text())
    for resource in package["resources"]:
        types = [each["type"] for each in resource.get("schema", {"fields": []})["fields"]]
        if resource["format"] == "parquet":
            assert types == ["string"] * (len(types) - 1) + ["number"]
    (exchanged,) = (release / "sdmx").glob("*.csv")
    header, line, *_ = exchanged.read_text().splitlines()
    assert header == "STRUCTURE,STRUCTURE_ID,ACTION,A10,A21,REGION,OBS_VALUE,OBS_STATUS,CONF_STATUS"
    assert line.startswith(f"dataflow,MICROGUARD:TURNOVER_{exchanged.stem.upper()}(1.0),I,")


@pytest.fixture(scope="module")
def pages(records_released, table_released, tmp_path_factory):
    """Return the public pages and evidence pages by their content."""
    _, areas, _ = records_released
    release_id = areas.public.current()
    return {
        "records": areas.record(release_id) / "report.html",
        "records_refused": refused(areas.record(release_id), tmp_path_factory.mktemp("refused")),
        "records_public": areas.public.release(release_id) / "report.html",
        "table": table_released[1] / "report.html",
    }


def refused(record, folder):
    """Return the page of the same evidence with an exceeded limit."""
    content = json.loads((record / "quality.json").read_text())
    verdicts = [each | {"passed": each["metric"] != "determined"} for each in content["verdicts"]]
    (folder / "quality.json").write_text(json.dumps(content | {"verdicts": verdicts}))
    evidence = read_evidence(folder, {measure.name: measure.section for measure in measures_of("records")})
    return Page(folder, evidence, measures_of("records")).write(None)


@pytest.mark.skipif(browser() is None, reason="no Chromium on this machine")
@pytest.mark.parametrize("name", ["records", "records_refused", "records_public", "table"])
def test_public_page_fits_the_widths_of_phone_tablet_and_screen(name, pages, pictures):
    assert pages[name].stat().st_size < 2_000_000
    for seen in look(pages[name], pictures / f"{name}.png"):
        assert not seen.scrolls
        assert seen.beyond == []
        assert (seen.crossing, seen.squeezed, seen.replaced, seen.complaints) == (0, 0, 0, 0)
