"""What is published beside the files is a function of them and of the manifest, whatever was original."""

import json
import re
import shutil

import numpy as np
import pytest

from pipelines.audit.release import audit
from pipelines.description.describe import DESCRIPTION, describe
from tests.pipelines.microdata import ROLES, persons, run, specification
from tests.pipelines.test_adjust import records
from tests.pipelines.test_adjust import run as adjusted
from tests.pipelines.test_adjust import specification as of_table

pytestmark = pytest.mark.spark
__all__ = ["adjusted"]


def described_anew(release, folder):
    """Page and descriptor of a copy of the public files, made far from the run."""
    shutil.copytree(release, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    for name in DESCRIPTION:
        (folder / name).unlink()
        assert name in manifest["files"]
    files = {n: f["sha256"] for n, f in manifest.pop("files").items() if n not in DESCRIPTION}
    describe(folder, manifest, files)
    return [(folder / name).read_bytes() for name in DESCRIPTION]


def test_the_description_of_records_is_made_of_public_files_alone(spark, tmp_path):
    original = persons(90)
    secret = 770_000_000 + np.random.default_rng(2).choice(10_000_000, len(original), replace=False)
    original.assign(income=secret.astype(float)).to_parquet(tmp_path / "data", index=False)
    income = ROLES["income"] | {"top_code": 779_000_000, "round_to": 1}
    spec = specification(
        tmp_path,
        ROLES | {"income": income},
        method={"representative": "mean"},
        publish={"disclose": ["information_loss"]},
    )
    answer, areas = run(spark, spec)
    release = areas.release(areas.served())
    assert described_anew(release, tmp_path / "copy") == [(release / n).read_bytes() for n in DESCRIPTION]
    assert audit(release).passed, audit(release).failures()
    texts = "".join((release / name).read_text() for name in (*DESCRIPTION, "manifest.json"))
    digits = re.sub(r"(?<=\d)[  ,](?=\d)", "", texts)
    published = set(map(str, secret[secret >= 779_000_000])) | {"779000000"}
    assert not [each for each in map(str, secret) if each in digits and each not in published]
    assert "CANARY" not in texts
    assert "information_loss" in json.loads((release / "manifest.json").read_text())["disclosed"]
    quality = json.loads((areas.record(areas.served()) / "quality.json").read_text())
    for measured in (quality["loss"]["all"]["sse"], quality["moments"]["age"]["variance_before"]):
        assert f"{measured:.6g}" not in texts
    recoded = "values above 779000000 are 779000000"
    for page in (release / "report.html", areas.record(areas.served()) / "report.html"):
        assert recoded in page.read_text()
    assert answer.as_json()["release_id"] in (release / "report.html").read_text()


def test_the_description_of_a_table_is_made_of_public_files_alone(adjusted, tmp_path):
    content = adjusted(of_table(tmp_path, records()))
    release = tmp_path / "lake" / content["release_id"]
    assert described_anew(release, tmp_path / "copy") == [(release / n).read_bytes() for n in DESCRIPTION]
    assert audit(release).passed, audit(release).failures()
    page = (release / "report.html").read_text()
    assert "Any value may differ from the true one" in page
    assert "<th class=n>turnover</th>" in page
    package = json.loads((release / "datapackage.json").read_text())
    (resource,) = package["resources"]
    assert [each["type"] for each in resource["schema"]["fields"]] == ["string", "string", "string", "number"]
