"""Tests of a register over several updates, and of what an attacker with all release folders can infer."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from microguard.pipelines.approval import approve
from microguard.pipelines.audit.differencing.exposure import joint_exposure
from microguard.pipelines.audit.differencing.published import read_records
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.history import history
from microguard.pipelines.job import Job
from microguard.pipelines.joint_audit import audit_source
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.ledger import Ledger
from microguard.pipelines.publication.publish import finish_what_died
from microguard.pipelines.release import run
from microguard.pipelines.series.membership import MEMBERS
from microguard.pipelines.verify import verify
from microguard.pipelines.withdraw import withdraw
from microguard.schemas.errors import GateRefused
from microguard.sdc.microaggregation.microaggregate import microaggregate

from tests.pipelines.audit.differencing.alignment import align_releases
from tests.pipelines.audit.differencing.public_files import write_records
from tests.pipelines.microdata import records, specification

pytestmark = pytest.mark.spark
ROLES = {
    "person": {"role": "unit"},
    "region": {"role": "region"},
    "sex": {"role": "quasi_identifier", "kind": "nominal"},
    "income": {"role": "quasi_identifier", "kind": "numeric"},
    "diagnosis": {"role": "sensitive"},
    "weight": {"role": "weight"},
}
LIMITS = {"max_waiting": 1.0, "max_ghosts": 1.0, "max_stale": 1.0}


def population(n=120):
    random = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "person": np.arange(n),
            "region": np.array(["north", "south"])[np.arange(n) % 2],
            "sex": np.array(["f", "m"])[random.integers(0, 2, n)],
            "income": np.round(random.lognormal(7, 1, n), 2),
            "diagnosis": np.array(["a", "b", "c"])[random.integers(0, 3, n)],
            # weights identify rows, so that a reader can match rows across releases
            "weight": random.uniform(1, 5, n),
        }
    )


def alike(first=120, n=12):
    """Return the last few entrants of each region, who have one sex and one diagnosis."""
    last_comers = population(n).assign(person=np.arange(first, first + n))
    place = np.arange(n) % 2
    return last_comers.assign(sex=np.array(["f", "m"])[place], diagnosis=np.array(["a", "b"])[place])


#: Number of units in the register at each update. At the first update 40 units enter, 70 leave (including
#: whole classes) and one is corrected. The second update changes nothing. At the third, the few entrants have
#: one diagnosis, which determines their sex.
NIGHTS = (range(80), range(120), range(70, 120), range(70, 120), range(70, 132))


def nights(everybody):
    frames = [everybody.iloc[list(persons)].copy() for persons in NIGHTS]
    for night in frames[2:]:
        night.loc[night["person"] == 75, "income"] = 9_999_999.0
    return frames


class Series:
    """Return a specification whose input is replaced at every update; `measures` are those of
    `microdata.run`.
    """

    measures: tuple[str, ...] | None = None

    def __init__(self, spark, folder, **publish):
        self.spark, self.folder = spark, folder
        self.publish = {"series": "register", **publish}
        self.method, self.quality = {}, {}
        self.spec = self.specified()
        self.areas = Areas.from_places(folder / "lake", folder / "evidence")

    def specified(self, **publish):
        given = {"input": {"path": "persons.parquet"}, "method": self.method, "series": LIMITS}
        given["quality"] = self.quality
        return specification(self.folder, ROLES, publish=self.publish | publish, **given)

    def night(self, frame, **publish):
        frame.to_parquet(self.folder / "persons.parquet", index=False)
        spec = self.specified(**publish)
        with self.areas.lock():
            finish_what_died(self.areas)
            return run(
                records(spec, self.measures), Job(self.spark, spec, self.areas, Progress(quiet=True))
            ).content

    def approved_night(self, frame):
        """Run an update that is pending until a person approves it."""
        report = self.night(frame, approval="required")
        assert self.areas.public.current() != report["release_id"]
        self.approve(report)
        return report

    def approve(self, report):
        approve(str(self.areas.record(report["release_id"])), by="A. Steward")
        assert self.areas.public.current() == report["release_id"]

    def folders(self):
        return [self.areas.public.release(entry.release_id) for entry in Ledger(self.areas).published()]


@pytest.fixture(scope="module")
def series(spark, tmp_path_factory):
    """Run five updates, and two refused ones: with other identifiers, and while an update is pending."""
    register = Series(spark, tmp_path_factory.mktemp("register"), format="delta")
    register.measures = ("homogeneity", "uniques_published", "determined", "loss", "tables", "record_linkage")
    first, second, third, *later = nights(pd.concat([population(), alike()], ignore_index=True))
    register.reports = [register.night(first)]
    register.renamed = refused(register, population(90).assign(person=lambda frame: frame["person"] + 1_000))
    waiting = register.night(second, approval="required")
    register.beside_waiting = refused(register, third)
    assert register.night(second)["release_id"] == waiting["release_id"]
    register.approve(waiting)
    register.reports += [waiting, *(register.night(night) for night in (third, *later))]
    return register


def refused(register, frame):
    """Return the reason of the refusal of an update; the current release must not change."""
    served = register.areas.public.current()
    with pytest.raises(GateRefused) as reason:
        register.night(frame)
    assert register.areas.public.current() == served
    return str(reason.value)


def rows(folder):
    return ds.dataset(folder / "microdata").to_table().to_pandas()


def test_register_publishes_three_updates_and_nothing_for_an_unchanged_fourth(series):
    first, second, third, fourth = (report["release_id"] for report in series.reports[:4])
    assert len({first, second, third}) == 3
    assert fourth == third
    told = [report["night"] for report in series.reports]
    assert [(night["comers"], night["leavers"]) for night in told[:3]] == [(80, 0), (40, 0), (0, 70)]
    assert series.reports[3]["night"]["corrected"] == 1
    assert [len(rows(folder)) for folder in series.folders()[:2]] == [80, 120]


def test_register_refuses_other_identifiers_and_accepts_its_own_identifiers(series):
    assert re.search(
        r"80 units are not in this input any more, 90 are new, and only 0 are known", series.renamed
    )
    assert series.reports[1]["night"]["comers"] == 40


def test_an_update_of_a_register_is_refused_while_one_is_pending(series):
    assert (
        f"{series.reports[1]['release_id']} of this series has been pending approval" in series.beside_waiting
    )


def test_register_measures_risk_over_all_records_of_the_release(series):
    release = series.folders()[3]
    quality = json.loads((series.areas.record(release.name) / "quality.json").read_text())
    homogeneity = quality["homogeneity"]["diagnosis"]
    assert homogeneity["records"] == len(rows(release)) > 12
    assert homogeneity["homogeneous"] >= 12
    assert quality["uniques_published"]["records"] == len(rows(release))
    assert quality["determined"] == {"region": [], "diagnosis": [], "weight": []}


def test_register_measures_information_loss_over_all_present_units(series):
    everybody = nights(pd.concat([population(), alike()], ignore_index=True))
    begun = everybody[0]["income"]  # mean and deviation of these units scale every update
    for night, release in zip((0, 1, 2, 4), series.folders(), strict=True):
        tonight, published = everybody[night], rows(release)
        stands = tonight.merge(published, on="weight", suffixes=("", "_published"))
        assert len(stands) >= 40
        before, after = (stands[name] - begun.mean() for name in ("income", "income_published"))
        quality = json.loads((series.areas.record(release.name) / "quality.json").read_text())
        mean, weights = np.average(before, weights=stands["weight"]), stands["weight"]
        loss = sum(weights * (after - before) ** 2) / sum(weights * (before - mean) ** 2)
        assert quality["loss"]["all"]["information_loss"] == pytest.approx(loss, rel=1e-9)
        # an update computes only the objective of new classes
        assert (quality["loss"]["all"]["objective"] is None) == (night > 0)
        counts = [frame["sex"].value_counts().sort_index() for frame in (tonight, published)]
        of_sex = next(each for each in quality["tables"] if each["variables"] == ["sex"])
        assert of_sex["max_absolute_error"] == max(abs(counts[1] - counts[0]))
        assert quality["record_linkage"]["sampled"] == len(stands)


def test_register_republishes_records_of_unchanged_classes_bit_for_bit(series):
    before, after = (rows(folder) for folder in series.folders()[:2])
    both = before.merge(after, on="weight", suffixes=("", "_after"))
    assert len(both) == 80
    for name in ("income", "sex", "region", "diagnosis"):
        assert (both[name] == both[f"{name}_after"]).all()


def test_register_discloses_nothing_to_a_reader_who_follows_every_row(series):
    exposure = joint_exposure(align_releases([read_records(folder) for folder in series.folders()]))
    assert exposure.units == 132
    assert exposure.safe, exposure.faults()


def test_table_time_travel_returns_the_single_releases(series):
    table = series.areas.public.folder / "delta"
    files = set()
    for version, folder in enumerate(series.folders()):
        then = DeltaTable(str(table), version=version)
        shown = then.to_pyarrow_table().to_pandas().sort_values("weight", ignore_index=True)
        pd.testing.assert_frame_equal(shown, rows(folder).sort_values("weight", ignore_index=True))
        files |= {Path(each).name for each in then.file_uris()}
    assert DeltaTable(str(table)).version() == version
    assert {each.name for each in table.glob("*.parquet")} == files


def test_joint_audit_finds_no_disclosure_and_history_has_a_line_for_each_release(series):
    exposure = audit_source(series.spec).content
    assert exposure["smallest_history"] >= 3
    assert exposure["units"] == 132
    lines = history(series.spec).text.splitlines()
    assert len(lines) == 5
    assert [row["comers"] for row in history(series.spec).content["releases"]] == [80, 40, 0, 12]


def test_manifest_contains_the_update_number_and_evidence_contains_its_counts(series):
    manifest = json.loads((series.folders()[2] / "manifest.json").read_text())
    assert manifest["series"]["generation"] == 3
    assert {row["region"] for row in manifest["series"]["regions"]} == {"north", "south"}
    quality = json.loads((series.areas.record(manifest["release_id"]) / "quality.json").read_text())
    assert quality["counts"]["ghosts"] > 0


def test_series_state_contains_no_identifier(series):
    for path in (series.areas.evidence / "series").rglob("*.parquet"):
        names = ds.dataset(path).schema.names
        assert "person" not in names


def test_series_with_a_lost_generation_is_refused(series, tmp_path):
    moved = sorted((series.areas.evidence / "series" / "persons").iterdir())[-1]
    shutil.move(moved, tmp_path / "kept")
    with pytest.raises(GateRefused, match="back-up"):
        series.night(population())
    shutil.move(tmp_path / "kept", moved)
    ledger = series.areas.ledger.read_text()
    lines = ledger.splitlines(keepends=True)
    series.areas.ledger.write_text("".join(lines[:-2]))
    with pytest.raises(GateRefused, match="are not in the ledger"):
        series.night(population())
    series.areas.ledger.write_text(ledger)


def test_map_with_exchanged_units_is_reported_as_not_compared(series):
    release = series.folders()[0].name
    (path, *_) = sorted((series.areas.record(release) / MEMBERS / "units.parquet").glob("*.parquet"))
    before, table = path.read_bytes(), pq.read_table(path)
    place, units = table.column_names.index("unit"), table["unit"]
    exchanged = pa.array(units.to_pylist()[::-1], units.type)
    pq.write_table(table.set_column(place, "unit", exchanged), path)
    with pytest.raises(GateRefused, match=release):
        audit_source(series.spec)
    with pytest.raises(GateRefused, match="releases that cannot be compared with"):
        series.night(pd.concat([population(), alike(n=30)], ignore_index=True))
    path.write_bytes(before)
    assert audit_source(series.spec).content["smallest_history"] >= 3


def test_control_updates_protected_from_scratch_reveal_exits(tmp_path):
    everybody = population()
    folders = [solved_anew(tmp_path, name, everybody.iloc[first:]) for first, name in enumerate(("1", "2"))]
    found = joint_exposure(align_releases([read_records(folder) for folder in folders]))
    assert found.below_k > 0
    assert found.determined_values > 0


def solved_anew(area, name, frame):
    """Protect an update as a single release: cluster by income within region and sex."""
    parts = []
    for _, alike in frame.groupby(["region", "sex"]):
        labels = microaggregate(alike[["income"]], 3, effort="fast").labels
        means = alike["income"].groupby(labels).transform("mean").round(2)
        parts.append(alike.assign(income=means).drop(columns="person"))
    roles = {name: (role["role"], role.get("kind")) for name, role in ROLES.items() if name != "person"}
    return write_records(area, name, pd.concat(parts).sample(frac=1, random_state=1), roles)


@pytest.fixture(scope="module")
def diverse(spark, tmp_path_factory):
    """Run three updates of diverse classes.

    In each update, six new units of every region have one diagnosis. In the last update, only one region has
    such units; the other six regions have several diagnoses.
    """
    register = Series(spark, tmp_path_factory.mktemp("diverse"), format="iceberg")
    register.method, register.measures = {"min_diversity": 2}, ("homogeneity", "diversity")
    begun = population(80)
    second = pd.concat([begun, alike(80)], ignore_index=True)
    mixed = alike(92)
    north = mixed["region"] == "north"
    mixed["diagnosis"] = np.where(north, np.array(["a", "b", "c"])[np.arange(12) % 3], "b")
    register.last = pd.concat([second, mixed], ignore_index=True)
    register.reports = [register.night(frame) for frame in (begun, second, register.last)]
    return register


def test_register_withholds_sensitive_values_of_entrants_with_too_few_distinct_values(diverse):
    counts = [(report["night"]["born"], report["night"]["waiting"]) for report in diverse.reports]
    assert counts == [(80, 0), (12, 0), (12, 0)]
    withheld = [report["night"]["withheld"] for report in diverse.reports]
    assert withheld[:2] == [0, 12]
    assert withheld[2] in (6, 12)
    first, second, third = (rows(folder) for folder in diverse.folders())
    assert first["diagnosis"].notna().all()
    assert second["diagnosis"].isna().sum() == 12
    assert third["diagnosis"].isna().sum() == 12 + withheld[2]
    for report in diverse.reports:
        quality = json.loads((diverse.areas.record(report["release_id"]) / "quality.json").read_text())
        assert quality["diversity"]["diagnosis"] >= 2
        assert quality["homogeneity"]["diagnosis"]["homogeneous"] == 0
    assert verify(str(diverse.folders()[-1])).content


def test_register_publishes_an_unchanged_update_if_the_last_release_was_withdrawn(diverse):
    """This test ends the series of the fixture."""
    first = diverse.areas.public.current()
    before = rows(diverse.areas.public.release(first))
    withdraw(str(diverse.areas.public.release(first)))
    second = diverse.night(diverse.last)["release_id"]
    assert diverse.areas.public.current() == second != first
    again = rows(diverse.areas.public.release(second))
    before, again = (frame.fillna({"diagnosis": ""}) for frame in (before, again))
    assert sorted(before.itertuples(index=False)) == sorted(again.itertuples(index=False))
    assert diverse.night(diverse.last)["release_id"] == second
    assert audit_source(diverse.spec).content["smallest_history"] >= 3
