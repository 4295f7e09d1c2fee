"""Tests of partitioned key combinations: equal results for every partitioning, and no lost record."""

from collections import Counter

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.measures.block_reports import OF_FILE
from microguard.pipelines.publication.staging.folder import FolderStagingArea
from microguard.pipelines.records import combination_parts, protect_by_frequency
from microguard.pipelines.records.combination_parts import CombinationParts, Layout
from microguard.pipelines.records.combinations import combinations, tables_of, write_combinations
from microguard.pipelines.records.protect_by_frequency import protected_in_parts
from microguard.schemas.errors import ProtectionFailed
from microguard.sdc.nominal.bounds import free_bound
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.partitions.reconcile import cut_regions

from tests.pipelines.microdata import published, run, specification
from tests.sdc.nominal.partitions import in_memory

QUASI = {"role": "quasi_identifier", "kind": "nominal"}
ROLES = {
    "region": {"role": "region"},
    "a.b": QUASI,
    "size": {"role": "quasi_identifier", "kind": "ordinal", "order": ["s", "m", "l"]},
    "job": QUASI,
}
MOST = 60


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(combination_parts, "cut_regions", lambda regions: cut_regions(regions, MOST))
    monkeypatch.setattr(protect_by_frequency, "MOST_IN_ONE", 10)


def persons(n=1_500, seed=2):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "region": rng.choice([f"r{i:02d}" for i in range(24)], n),
            "a.b": rng.choice(["x", "y", None], n, p=[0.6, 0.3, 0.1]),
            "size": rng.choice(["s", "m", "l"], n, p=[0.7, 0.2, 0.1]),
            "job": rng.choice([f"j{i}" for i in range(9)], n, p=rng.dirichlet(np.ones(9))),
        }
    )


def asked_for(folder, **more):
    return specification(folder, ROLES, **more)


def divided(spark, frame, folder, asked):
    """Protect the partitions of the key combinations of a frame; return the report and the rows of moves."""
    group = asked.clusterings[0]
    place = FolderStagingArea(folder)
    write_combinations(frame, group, asked, place, "combinations")
    layout = Layout.of(place, "combinations", group, asked)
    request = protect_by_frequency._asked(layout, group, asked)
    parts = CombinationParts.write(spark, layout, request, place, "parts")
    report = protected_in_parts(parts, "moves")
    return parts, report, pq.read_table(folder / "moves")


def test_moves_are_equal_for_any_partitions_and_row_order_and_for_one_process(spark, tmp_path):
    frame, asked, answers = persons(), asked_for(tmp_path), []
    for number, partitions in enumerate((1, 5)):
        shuffled = frame.sample(frac=1, random_state=number)
        folder = tmp_path / str(number)
        folder.mkdir()
        scattered = spark.createDataFrame(shuffled).repartition(partitions)
        parts, report, moves = divided(spark, scattered, folder, asked)
        answers.append((moves, report | {"seconds": 0}))
    assert len(parts) > 8
    assert all(answer[0].equals(answers[0][0]) and answer[1] == answers[0][1] for answer in answers)
    group = asked.clusterings[0]
    occurring = combinations(FolderStagingArea(folder), "combinations", group, asked)
    counts, _, errors = in_memory.protected_in_parts(occurring.frequencies, parts.asked, MOST)
    tables = ControlTables.of(occurring.frequencies, tables_of(group, asked), levels=parts.asked.levels)
    assert np.array_equal(tables.errors(counts)[tables.level == 0], errors)
    found = np.concatenate([parts.files.standing(p, s).counts for p, s in sorted(parts._stage.items())])
    assert np.array_equal(found, counts)
    assert report["objective"] == pytest.approx(tables.chi2(counts))
    assert report["certificates"][0]["lower_bound"] == pytest.approx(free_bound(tables.original, 3))
    assert (report["records"], report["bound_of"]) == (1_500, OF_FILE)
    assert report["clusters"] == np.count_nonzero(counts)


def test_release_in_partitions_is_k_anonymous_and_moves_no_record_between_regions(spark, tmp_path):
    frame = persons()
    frame.to_parquet(tmp_path / "data")
    spec = asked_for(tmp_path)
    _, areas = run(spark, spec, ())
    released = published(areas)
    classes = Counter(tuple(map(str, row)) for row in released[list(ROLES)].itertuples(index=False))
    assert min(classes.values()) >= 3
    assert released["region"].value_counts().to_dict() == frame["region"].value_counts().to_dict()
    occurred = {tuple(map(str, row)) for row in frame.itertuples(index=False)}
    assert {tuple(map(str, row)) for row in released[list(ROLES)].itertuples(index=False)} <= occurred
    work = pq.read_table(areas.record(areas.public.current()) / "blocks.parquet")["work"].to_pylist()
    assert ['"parts"' in each for each in work] == [True]


def test_refusal_of_regions_below_k_states_their_number(spark, tmp_path):
    frame = pd.concat([persons(200), persons(1).assign(region="alone")])
    asked = asked_for(tmp_path)
    with pytest.raises(ProtectionFailed, match="at least k = 3 records in each, found fewer in 1"):
        divided(spark, spark.createDataFrame(frame), tmp_path, asked)


def test_key_combinations_with_equal_digests_end_the_run(spark, tmp_path):
    asked, folder = asked_for(tmp_path), tmp_path / "combinations"
    group = asked.clusterings[0]
    place = FolderStagingArea(tmp_path)
    write_combinations(spark.createDataFrame(persons(300)), group, asked, place, "combinations")
    spark.read.parquet(str(folder)).selectExpr(
        *[f"v{i}" for i in range(4)], "1L as __digest0", "2L as __digest1", "__count"
    ).write.parquet(str(tmp_path / "alike"))
    layout = Layout.of(place, "alike", group, asked)
    with pytest.raises(ProtectionFailed, match="could not be distinguished"):
        CombinationParts.write(
            spark, layout, protect_by_frequency._asked(layout, group, asked), place, "parts"
        )
