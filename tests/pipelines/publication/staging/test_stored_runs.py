"""Tests of evidence in an object store: killed runs continue, altered files are refused, leftovers are
removed.
"""

from __future__ import annotations

from functools import cache

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.approval import approve
from microguard.pipelines.engine.failures import without_values_of_records
from microguard.pipelines.intake.written_input import RECORDS
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.key import KEY_VARIABLE
from microguard.pipelines.publication.staging.part_lists import PartListStagingArea
from microguard.pipelines.publication.storage.object_store import connected
from microguard.pipelines.publication.stored_evidence import VARIABLE
from microguard.schemas.errors import MicroguardError

from tests.pipelines.microdata import NOMINAL, ROLES, persons, published, run, specification
from tests.pipelines.publication.storage.stores import names
from tests.pipelines.releases import Killed
from tests.pipelines.series.test_register import Series, alike, nights, population, rows

FAST = {"effort": "fast"}


@pytest.fixture
def place(tasks_reach, tmp_path, monkeypatch):
    """Return a folder with the input, and the addresses of a lake and of evidence, for a separate machine."""
    persons().to_parquet(tmp_path / "data", index=False)
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "key"))
    monkeypatch.setenv(VARIABLE, str(tmp_path / "first machine"))
    return {"path": f"{tasks_reach()}/persons", "evidence": f"{tasks_reach()}/persons"}


@pytest.fixture(scope="module")
def in_a_folder(spark, tmp_path_factory):
    """Return the records that a run in a folder publishes, by the roles of its variables."""

    @cache
    def records(by_cluster: bool) -> pd.DataFrame:
        folder = tmp_path_factory.mktemp("here")
        persons().to_parquet(folder / "data", index=False)
        return published(
            run(spark, specification(folder, ROLES if by_cluster else NOMINAL, method=FAST), ())[1]
        )

    return records


def released(areas) -> pd.DataFrame:
    with areas.public.reading(areas.public.current()) as folder:
        frame = pq.read_table(folder / "microdata").to_pandas()
    return frame.sort_values(list(frame.columns), ignore_index=True)


def work(place) -> list[str]:
    return [name for name in names(connected(place["evidence"])) if name.startswith(".work/")]


@pytest.mark.parametrize(
    ("by_cluster", "kills"),
    [
        pytest.param(True, {"protected-all", "microdata"}, id="blocks solved, records protected"),
        pytest.param(True, None, id="by microaggregation", marks=pytest.mark.long),
        pytest.param(False, None, id="by frequency", marks=pytest.mark.long),
    ],
)
def test_runs_killed_before_commits_of_parts_continue_on_another_machine(
    by_cluster, kills, in_a_folder, spark, place, tmp_path, monkeypatch
):
    spec = specification(tmp_path, ROLES if by_cluster else NOMINAL, method=FAST, publish=place)
    gather, deaths = PartListStagingArea.commit_parts, []

    def dying(self, name, parts, schema):
        if name not in deaths and (kills is None or name in kills):
            deaths.append(name)
            raise Killed
        gather(self, name, parts, schema)

    monkeypatch.setattr(PartListStagingArea, "commit_parts", dying)
    while True:
        deaths_before, orphans = len(deaths), set(work(place))
        try:
            _, areas = run(spark, spec, ())
        except Killed:
            assert len(deaths) == deaths_before + 1
            if deaths[-1] == RECORDS:  # a run that is not killed removes the copy of its input
                assert set(work(place)) == orphans
            else:
                assert set(work(place)) > orphans
            assert names(connected(place["path"])) == []
            blocks_solved = [name for name in work(place) if name.endswith(".npz")]
            monkeypatch.setenv(VARIABLE, str(tmp_path / f"machine {len(deaths)}"))
            continue
        break
    assert "microdata" in deaths
    assert bool(blocks_solved) == by_cluster
    blocks = pq.read_table(areas.record(areas.public.current()) / "blocks.parquet").to_pylist()
    assert blocks
    assert not by_cluster or all(block["resumed"] for block in blocks)
    pd.testing.assert_frame_equal(released(areas), in_a_folder(by_cluster))
    assert work(place) == []
    assert not list(tmp_path.glob("*machine*/**/.work/*/*/**/*.parquet"))


def altered(content: bytes) -> bytes:
    """Rewrite the Parquet file with one changed number."""
    table = pq.read_table(pa.BufferReader(content))
    place = table.schema.get_field_index("age")
    ages = table["age"].to_pylist()
    ages[0] = (ages[0] or 0) + 1
    sink = pa.BufferOutputStream()
    pq.write_table(table.set_column(place, "age", pa.array(ages, table.schema.field(place).type)), sink)
    return sink.getvalue().to_pybytes()


def tampering(frame):
    """Gather files and alter the gathered file of a given name."""
    gather = PartListStagingArea.commit_parts

    def tampered(self, name, parts, schema):
        gather(self, name, parts, schema)
        if name == frame:
            content = self.storage.get(parts[0].name).content
            self.storage.put(parts[0].name, altered(content))

    return tampered


@pytest.mark.parametrize(
    "frames", [("microdata",), pytest.param(("protected-all", "microdata"), marks=pytest.mark.long)]
)
def test_part_altered_in_the_store_is_refused_and_written_again_by_the_next_run(
    frames, in_a_folder, spark, place, tmp_path, monkeypatch
):
    spec = specification(tmp_path, method=FAST, publish=place)
    for frame in frames:
        with monkeypatch.context() as patched:
            patched.setattr(PartListStagingArea, "commit_parts", tampering(frame))
            with pytest.raises(MicroguardError), without_values_of_records():
                run(spark, spec, ())
        assert names(connected(place["path"])) == []
    _, areas = run(spark, spec, ())
    pd.testing.assert_frame_equal(released(areas), in_a_folder(by_cluster=True))


class StoredSeries(Series):
    """Return a register whose areas are in a store; each update runs on another machine."""

    def __init__(self, spark, folder, place, monkeypatch):
        super().__init__(spark, folder, **place)
        self.place, self.machines, self.environment = place, 0, monkeypatch

    def night(self, frame, **publish):
        self.machines += 1
        self.environment.setenv(VARIABLE, str(self.folder / f"machine {self.machines}"))
        self.areas = Areas.from_places(self.place["path"], self.place["evidence"])
        return super().night(frame, **publish)

    def approved_night(self, frame):
        report = self.night(frame, approval="required")
        address = f"{self.place['evidence']}/{report['release_id']}"
        self.environment.setenv(VARIABLE, str(self.folder / "the steward's machine"))
        approve(address, by="A. Steward")
        return report


@pytest.mark.long
def test_register_publishes_equal_releases_on_several_machines_and_in_a_folder(
    spark, place, tmp_path, monkeypatch
):
    first, second, *_ = nights(pd.concat([population(), alike()], ignore_index=True))
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    here = Series(spark, tmp_path / "here")
    there = StoredSeries(spark, tmp_path / "there", place, monkeypatch)
    for register in (here, there):
        register.reports = [register.night(first), register.approved_night(second)]
    assert [each["release_id"] for each in here.reports] == [each["release_id"] for each in there.reports]
    for report in here.reports:
        with there.areas.public.reading(report["release_id"]) as folder:
            stored = rows(folder)
        names = list(stored.columns)
        pd.testing.assert_frame_equal(
            stored.sort_values(names, ignore_index=True),
            rows(here.areas.public.release(report["release_id"])).sort_values(names, ignore_index=True),
        )
    assert work(place) == []
