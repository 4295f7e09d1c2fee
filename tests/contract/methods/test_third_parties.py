"""Tests of third-party methods end to end: published with their guarantee, verified, refused if it is
violated.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from microguard.pipelines.publication.key import KEY_BYTES, KEY_VARIABLE
from microguard.pipelines.verify import verify
from microguard.schemas.errors import GateRefused, ProtectionFailed
from microguard.schemas.specification.read import build_specification

from tests.contract.methods.installing import PLUGINS, install
from tests.pipelines import turnover
from tests.pipelines.microdata import NOMINAL, content, persons, published, quality, run

#: Only keys that a perturbation uses; `name` and `person` are not published.
ROLES = {name: role for name, role in NOMINAL.items() if name != "income"}


def perturbing(folder, **parameters):
    """Return the specification of a perturbation; its input is in the folder."""
    persons().drop(columns="income").to_parquet(folder / "data", index=False)
    given = content(ROLES)
    given["method"] = {"name": "replacement", "parameters": parameters}
    return build_specification(given, folder)


def suppressing(folder, **given):
    return turnover.specification(folder, turnover.records(), method="cell_suppression", effort=None, **given)


@pytest.mark.parametrize("name", ["replacement", "suppression"])
def test_third_party_method_needs_at_most_five_source_files(name):
    assert 1 <= len(list((PLUGINS / name).rglob("*.py"))) <= 5


def test_third_party_perturbation_is_published_without_a_guarantee_and_verified(spark, tmp_path, monkeypatch):
    install("replacement", tmp_path, monkeypatch)
    (tmp_path / "key").write_text("5a" * KEY_BYTES)
    (tmp_path / "key").chmod(0o600)
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "key"))
    _, areas = run(spark, perturbing(tmp_path, stay=0.6), ("risk",))
    frame = published(areas)
    names = list(frame.columns)
    assert len(frame) == len(persons())
    assert not frame.equals(persons()[names].sort_values(names, ignore_index=True))
    release = areas.public.release(areas.public.current())
    manifest = json.loads((release / "manifest.json").read_text())
    assert manifest["guarantee"]["name"] == "measured only"
    assert manifest["guarantee"]["variables"] == ["sex", "age"]
    assert "k" not in manifest["guarantee"]
    assert manifest["method"]["name"] == "replacement"
    assert any("transition probabilities" in limit for limit in manifest["limits"])
    assert quality(areas)["risk"]
    assert "measured only: " in verify(str(release)).text
    for page in (release / "report.html", areas.record(areas.public.current()) / "report.html"):
        text = page.read_text()
        assert "perturbed at random" in text
        assert "k-anonymous" not in text
    assert "k-anonymous" not in (release / "datapackage.json").read_text()


def claim_k_anonymity(k, unit, tmp_path, monkeypatch):
    """Install the perturbation of the example with k-anonymity in place of its guarantee."""
    install(
        "replacement",
        tmp_path,
        monkeypatch,
        __init__=('("measured only",)', '("k-anonymity",)'),
        adapter=(
            "return (MeasuredOnly(self.specification.quasi_identifiers),)",
            "from microguard.pipelines.guarantees.k_anonymity import Group, KAnonymity\n\n"
            '        group = Group("all", self.specification.quasi_identifiers, ("region",))\n'
            f'        return (KAnonymity({k}, "{unit}", (group,), True),)',
        ),
    )


def test_third_party_perturbation_that_claims_k_anonymity_is_not_published(spark, tmp_path, monkeypatch):
    claim_k_anonymity(30, "record", tmp_path, monkeypatch)
    with pytest.raises(ProtectionFailed, match=r"records that have any combination of all .*at least 30"):
        run(spark, perturbing(tmp_path), ())
    assert not (tmp_path / "lake" / "current.json").exists()


@pytest.mark.parametrize("changed", [True, False])
def test_third_party_method_that_changes_the_households_that_k_counts_is_refused(
    spark, tmp_path, monkeypatch, changed
):
    """With one household per record, each class would appear to have k households."""
    other = 'f.xxhash64(*frame.columns).alias("person") if name == "person" else '
    claim_k_anonymity(3, "household", tmp_path, monkeypatch)
    adapter = tmp_path / "project-replacement" / "replacement" / "adapter.py"
    text = adapter.read_text().replace("[changed.get(", f"[{other if changed else ''}changed.get(")
    adapter.write_text(text)
    row = tmp_path / "project-replacement" / "replacement" / "__init__.py"
    row.write_text(row.read_text().replace('kinds=("nominal",),', 'kinds=("nominal",), keys=("unit",),'))
    persons().drop(columns="income").assign(person=lambda each: each["person"] % 9).to_parquet(
        tmp_path / "data", index=False
    )
    given = content(ROLES | {"person": {"role": "household"}})
    given["method"] = {"name": "replacement", "unit": "household"}
    expected = "expected the households of the input" if changed else "fewest|at least 3"
    with pytest.raises(ProtectionFailed, match=expected):
        run(spark, build_specification(given, tmp_path), ())
    assert not (tmp_path / "lake" / "current.json").exists()


def test_third_party_cell_suppression_is_published_with_null_and_status_and_verified(
    adjusting, tmp_path, monkeypatch
):
    install("suppression", tmp_path, monkeypatch)
    released = adjusting(suppressing(tmp_path))
    release = Path(released["release"])
    manifest = json.loads((release / "manifest.json").read_text())
    assert manifest["method"]["name"] == "cell suppression"
    assert manifest["suppressed"] is True
    (frame,) = [pq.read_table(path).to_pandas() for path in sorted(release.rglob("*.parquet"))]
    assert set(frame["status"]) == {"published", "suppressed"}
    assert (frame["turnover"].isna() == (frame["status"] == "suppressed")).all()
    assert "suppressed table: " in verify(str(release)).text
    (lines,) = [path.read_text().splitlines() for path in (release / "sdmx").glob("*.csv")]
    assert lines[0].endswith("OBS_VALUE,OBS_STATUS,CONF_STATUS")
    assert sum(line.endswith(",NaN,Q,C") for line in lines) == (frame["status"] == "suppressed").sum()
    assert "suppressed" in (release / "report.html").read_text()
    cells = pq.read_table(Path(released["report"]).parent / "published_cells.parquet").to_pandas()
    assert len(cells) == len(frame)
    assert (cells["status"] == "suppressed").sum() == (frame["status"] == "suppressed").sum()


@pytest.mark.parametrize(
    ("broken", "metric"),
    [
        (
            {"pattern": ("changed = True\n    while", "changed = False\n    while")},
            "can be computed from published sums",
        ),
        (
            {"adapter": ("np.nan, table.values)", "np.nan, table.values + 1)")},
            "differ from the sum of their parts",
        ),
    ],
)
def test_third_party_suppression_that_discloses_a_cell_is_not_published(
    adjusting, tmp_path, monkeypatch, broken, metric
):
    install("suppression", tmp_path, monkeypatch, **broken)
    with pytest.raises(ProtectionFailed, match=metric):
        adjusting(suppressing(tmp_path))
    assert not (tmp_path / "lake" / "current.json").exists()


def test_suppressed_table_after_another_table_of_its_source_is_refused(adjusting, tmp_path, monkeypatch):
    install("suppression", tmp_path, monkeypatch)
    adjusting(turnover.specification(tmp_path, turnover.records()))
    chosen = suppressing(tmp_path, release={"name": "again", "source": "turnover"})
    apart = chosen.model_copy(update={"publish": chosen.publish.model_copy(update={"path": "apart"})})
    with pytest.raises(GateRefused, match="published before with changed values"):
        adjusting(apart)
