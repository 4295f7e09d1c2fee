"""Tests of the main job end to end on a small file: published, refused and unchanged contents."""

import json
import logging
from dataclasses import replace

import microguard.pipelines.admission
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.audit.release import audit
from microguard.pipelines.check import risk_of
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.intake.read import read
from microguard.pipelines.job import Job
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.records import product, protect_by_microaggregation
from microguard.schemas.errors import GateRefused, InputRejected, ProtectionFailed, SpecificationError
from pyspark.errors import AnalysisException
from pyspark.sql import functions as f

from tests.pipelines import standard
from tests.pipelines.microdata import NOMINAL, ROLES, persons, published, quality, run, specification
from tests.pipelines.releases import Killed

pytestmark = pytest.mark.spark


def test_mixed_release_preserves_records_and_types_and_meets_its_guarantee(spark, mixed_release):
    original, frame, found = mixed_release.original, mixed_release.frame, mixed_release.found
    assert list(frame.columns) == ["region", "sex", "age", "income", "diagnosis", "weight", "note"]
    assert frame.dtypes["age"] == np.int16
    assert len(frame) == len(original)
    assert frame.groupby(["region", "sex", "age", "income"]).size().min() >= 3
    kept = ["region", "diagnosis", "weight", "note"]
    pd.testing.assert_frame_equal(
        frame[kept].sort_values(kept, ignore_index=True), original[kept].sort_values(kept, ignore_index=True)
    )
    blocks = pq.read_table(mixed_release.record / "blocks.parquet")["records"].to_pylist()
    assert sum(blocks) == len(original)
    assert 3 <= min(blocks) <= max(blocks) <= standard.BLOCK
    counts = {"input": 105, "rejected": {}, "suppressed": 0, "published": 105, "waiting": 0, "ghosts": 0}
    assert found["counts"] == counts | {"blocks": len(blocks)}
    assert found["risk"]["all"]["after"]["classes_below_k"] == 0
    assert 0 < found["loss"]["all"]["information_loss"] < 1
    assert all(verdict["passed"] for verdict in found["verdicts"])
    assert {"read", "screen", "check"} <= set(found["stages"])
    again, _ = run(spark, mixed_release.spec)
    assert again.as_json()["release_id"] == mixed_release.answer.as_json()["release_id"]
    assert "already" in again.summary()


def test_information_loss_is_computed_from_the_published_records(mixed_release):
    both = mixed_release.original.merge(mixed_release.frame, on="note", suffixes=("", "_after"))
    numbers = ["age", "income"]
    before = both[numbers].to_numpy(float)
    after = both[[f"{name}_after" for name in numbers]].to_numpy(float)
    spread, weights = before.std(axis=0, ddof=1), both["weight"].to_numpy()
    mean = np.average(before, axis=0, weights=weights)
    squares = [weights @ (((each - before) / spread) ** 2) for each in (after, np.tile(mean, (len(both), 1)))]
    loss = squares[0].sum() / squares[1].sum()
    found = mixed_release.found
    assert found["loss"]["all"]["information_loss"] == pytest.approx(loss, rel=1e-5)
    variance = np.cov(after[:, 1], aweights=weights, ddof=0) * len(both) / (len(both) - 1)
    assert found["moments"]["income"]["variance_after"] == pytest.approx(variance, rel=1e-5)


def test_dominant_contributor_is_counted_and_refused_if_the_gate_limits_dominance(spark, tmp_path):
    original = persons(90).drop(columns="note").assign(income=lambda frame: 1000 + frame.index % 10)
    original.loc[7, "income"] = 50 * original["income"].max()
    original.to_parquet(tmp_path / "data", index=False)
    roles = {name: role for name, role in ROLES.items() if name != "note"}
    limited = specification(tmp_path, roles, quality={"dominance": {"n": 1, "k": 85}})
    with pytest.raises(GateRefused, match="income") as refused:
        run(spark, limited, ("dominance",))
    assert "dominance of age" not in str(refused.value)
    (evidence,) = (tmp_path / "evidence").glob("*/quality.json")
    found = json.loads(evidence.read_text())["dominance"]
    assert found["income"]["failing"] == 1
    assert found["age"]["failing"] == 0


def test_bounds_are_stated_for_the_given_blocks_and_for_the_whole_file(spark, tmp_path):
    persons(48).to_parquet(tmp_path / "data", index=False)
    found = {}
    for name, most in (("cut", 10), ("whole", 200)):
        spec = specification(
            tmp_path,
            blocking={"max_records": most},
            method={"effort": "exact", "weighted": False},
            publish={"path": f"lake-{name}", "evidence": f"evidence-{name}"},
        )
        areas = run(spark, spec, ("loss",))[1]
        found[name] = quality(areas)["loss"]["all"]
        assert set(
            pq.read_table(areas.record(areas.public.current()) / "blocks.parquet")["optimal"].to_pylist()
        ) == {True}
    optimum = found["whole"]["lower_bound"]
    assert optimum == pytest.approx(found["whole"]["objective"])
    assert found["cut"]["lower_bound"] >= optimum * (1 - 1e-9)
    assert 0 < found["cut"]["whole_file_lower_bound"] <= found["whole"]["whole_file_lower_bound"] * (1 + 1e-9)
    assert found["whole"]["whole_file_lower_bound"] == pytest.approx(optimum)


def test_nominal_release_invents_no_combination_and_measures_its_tables(nominal_release):
    original, frame = nominal_release.original, nominal_release.frame
    assert original["sex"].isna().any()
    sizes = frame.groupby(["region", "sex", "age"], dropna=False).size()
    occurring = set(original.groupby(["region", "sex", "age"], dropna=False).size().index.map(repr))
    assert sizes.min() >= 3
    assert set(sizes.index.map(repr)) <= occurring
    old = original.groupby("sex", dropna=False).size()
    new = frame.groupby("sex", dropna=False).size().reindex(old.index, fill_value=0)
    tables = nominal_release.found["tables"]
    table = next(table for table in tables if table["variables"] == ["sex"])
    assert table["chi2"] == pytest.approx(float(((new - old) ** 2 / old).sum()))
    assert table["max_absolute_error"] == int((new - old).abs().max())


@pytest.mark.parametrize("kind", ["mixed", "nominal"])
def test_same_records_in_any_order_and_files_give_the_same_release(kind, spark, tmp_path, request):
    """The release is also equal if Spark generates code for its expressions instead of interpreting them."""
    release = request.getfixturevalue(f"{kind}_release")
    generated = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "CODEGEN_ONLY"}
    interpreted = {name: spark.conf.get(name) for name in generated}
    assert interpreted != generated
    original = release.original
    spec = standard.written(tmp_path, original, standard.MIXED if kind == "mixed" else NOMINAL)
    shuffled = original.sample(frac=1, random_state=1)
    for part, rows in enumerate(np.array_split(np.arange(len(original)), 7)):
        shuffled.iloc[rows].to_parquet(tmp_path / "data" / f"{part}.parquet", index=False)
    for name, value in generated.items():
        spark.conf.set(name, value)
    try:
        _, areas = run(spark, spec, ())
    finally:
        for name, value in interpreted.items():
            spark.conf.set(name, value)
    pd.testing.assert_frame_equal(published(areas), release.frame)


def test_groups_are_protected_independently_and_the_manifest_states_it(spark, tmp_path):
    persons().to_parquet(tmp_path / "data", index=False)
    groups = [{"name": "who", "variables": ["sex", "age"]}, {"name": "what", "variables": ["income"]}]
    _, areas = run(spark, specification(tmp_path, groups=groups), ("risk",))
    frame = published(areas)
    assert frame.groupby(["region", "sex", "age"]).size().min() >= 3
    assert frame.groupby(["region", "income"]).size().min() >= 3
    manifest = json.loads((areas.public.release(areas.public.current()) / "manifest.json").read_text())
    assert manifest["guarantee"]["jointly"] is False
    assert quality(areas)["risk"]["jointly"]["after"]["uniques"] >= 0


def test_release_altered_in_staging_is_refused(spark, tmp_path, monkeypatch):
    persons().to_parquet(tmp_path / "data", index=False)
    stage = product.stage

    def altering(*arguments):
        staged = stage(*arguments)
        path = staged.microdata[0]
        table = pq.read_table(path)
        ages = table["age"].to_pylist()
        altered = pa.array([ages[0] + 1, *ages[1:]], table.schema.field("age").type)
        pq.write_table(table.set_column(table.schema.get_field_index("age"), "age", altered), path)
        return staged

    monkeypatch.setattr(product, "stage", altering)
    with pytest.raises(ProtectionFailed):
        run(spark, specification(tmp_path), ())
    assert not (tmp_path / "lake" / "current.json").exists()


def test_run_that_separates_variables_from_their_records_is_refused(spark, tmp_path, monkeypatch):
    persons().to_parquet(tmp_path / "data", index=False)
    recorded = product.Records.protect

    def torn(self, job, screened, release_id):
        protected = recorded(self, job, screened, release_id)
        swapped = (
            f.when(f.col("note") == "n1", "n2").when(f.col("note") == "n2", "n1").otherwise(f.col("note"))
        )
        frame = protected.protected.withColumn("note", swapped)
        return replace(protected, protected=frame)

    monkeypatch.setattr(product.Records, "protect", torn)
    with pytest.raises(ProtectionFailed, match="columns published unmodified contain the input's values"):
        run(spark, specification(tmp_path), ())
    assert not (tmp_path / "lake" / "current.json").exists()


def test_refused_run_states_all_exceeded_limits_and_leaves_only_evidence(spark, tmp_path):
    """The run violates two limits: a column determines a protected one, and the loss is too large."""
    gives_away = persons().assign(note=lambda frame: frame["sex"].str.upper())
    gives_away.to_parquet(tmp_path / "data", index=False)
    limits = {"max_information_loss": 0.0}
    with pytest.raises(GateRefused) as refused:
        run(spark, specification(tmp_path, quality=limits))
    failed = {failure.key for failure in refused.value.failures}
    assert failed >= {"information_loss", "determined of note"}
    assert not (tmp_path / "lake").exists()
    assert list((tmp_path / "evidence").glob("*/quality.json"))


def test_method_that_does_not_support_the_variables_is_refused(spark, tmp_path):
    persons().to_parquet(tmp_path / "data", index=False)
    with pytest.raises(SpecificationError):
        run(spark, specification(tmp_path, method={"algorithm": "projection-pv"}))


ODD_NAMES = {
    "a.b": {"role": "quasi_identifier", "kind": "nominal"},
    ".x": {"role": "quasi_identifier", "kind": "nominal"},
    "Sex": {"role": "quasi_identifier", "kind": "nominal"},
    "records": {"role": "quasi_identifier", "kind": "nominal"},
    "q`": {"role": "other"},
    "first": {"role": "other"},
    "tree": {"role": "other"},
    "b": {"role": "other"},
}


def with_odd_names(frame):
    rng = np.random.default_rng(3)
    return frame.assign(**{name: rng.integers(0, 3, len(frame)) for name in ODD_NAMES})


@pytest.fixture(scope="module")
def odd_nominal(spark, tmp_path_factory):
    """Return originals and areas of a release with unusual column names and a nominal timestamp."""
    folder = tmp_path_factory.mktemp("odd")
    original = with_odd_names(persons(90))
    original["age"] = pd.to_datetime(original["age"], unit="D").astype("M8[ns]")
    original.to_parquet(folder / "data", index=False)
    roles = ODD_NAMES | NOMINAL
    small = {"blocking": {"max_records": 12}, "method": {"effort": "fast"}}
    return original, run(spark, specification(folder, roles, **small), ())[1]


@pytest.fixture(scope="module")
def odd_mixed(spark, tmp_path_factory):
    """Return the same for mixed variables without a region, with missing numbers."""
    folder = tmp_path_factory.mktemp("odd")
    original = with_odd_names(persons(90)).drop(columns="region")
    original["income"] = original["income"].mask(original["person"] % 3 == 0)
    original.to_parquet(folder / "data", index=False)
    roles = {name: role for name, role in (ODD_NAMES | ROLES).items() if name != "region"}
    small = {"blocking": {"max_records": 12}, "method": {"effort": "fast"}}
    return original, run(
        spark, specification(folder, roles, missing={"numeric": "own_cluster"}, **small), ()
    )[1]


@pytest.mark.parametrize("kind", ["nominal", "mixed"])
def test_column_with_any_name_keeps_its_values(kind, request):
    original, areas = request.getfixturevalue(f"odd_{kind}")
    kept = ["note", "q`", "first", "tree", "b", "weight"]
    pd.testing.assert_frame_equal(
        published(areas)[kept].sort_values(kept, ignore_index=True),
        original[kept].sort_values(kept, ignore_index=True),
    )
    found = audit(areas.public.release(areas.public.current()))
    assert found.passed, found.failures()


def test_missing_numbers_are_clustered_by_their_pattern(odd_mixed):
    original, areas = odd_mixed
    frame = published(areas)
    assert frame["income"].isna().sum() == original["income"].isna().sum() > 0
    keys = ["sex", "age", "income", "a.b", ".x", "Sex", "records"]
    assert frame.groupby(keys, dropna=False).size().min() >= 3


def test_published_delta_and_iceberg_tables_have_the_types_of_the_records(odd_nominal):
    _, areas = odd_nominal
    folder = areas.public.release(areas.public.current())
    types = {pq.read_schema(path).field("age").type for path in folder.glob("tables/*age*.parquet")}
    assert types == {pa.timestamp("ns")}


def test_check_and_protect_refuse_a_format_that_cannot_represent_the_columns(spark, tmp_path):
    persons().assign(note=np.uint8(200)).to_parquet(tmp_path / "data", index=False)
    spec = specification(tmp_path, publish={"format": "delta"})
    checked = Job(spark, spec, Areas.from_places(spec.public_area, spec.evidence_area), Progress(quiet=True))
    for verb in (lambda: run(spark, spec), lambda: risk_of(checked, read(spark, spec))):
        with pytest.raises(InputRejected, match="cannot hold note"):
            verb()


@pytest.fixture
def killed(monkeypatch):
    """Kill runs before they write; return the records that each run had protected, as a sorted frame."""
    protected = []

    def stage(records, __, comparison, *___):
        frame = comparison.protected.select(*map(column, records.contract.names)).toPandas()
        protected.append(frame.sort_values(list(frame.columns), ignore_index=True))
        raise Killed

    monkeypatch.setattr(product.Records, "stage", stage)
    return protected


def truncate_what_is_left(folder):
    """Truncate every protected file of a killed run to half its length."""
    (resume,) = (folder / "evidence" / ".work").glob("*/resume")
    left = [*resume.glob("protected-all/*.parquet"), *resume.glob("blocks-all/*.npz")]
    assert left
    for path in left:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def test_changed_files_of_a_killed_run_are_not_used(spark, tmp_path, killed):
    persons().to_parquet(tmp_path / "data", index=False)
    spec = specification(tmp_path, NOMINAL)
    with pytest.raises(Killed):
        run(spark, spec)
    truncate_what_is_left(tmp_path)
    with pytest.raises(Killed):
        run(spark, spec)
    pd.testing.assert_frame_equal(*killed)


def test_failed_or_changed_blocks_are_solved_again_by_the_next_run(spark, tmp_path, monkeypatch, killed):
    persons().to_parquet(tmp_path / "data", index=False)
    spec = specification(tmp_path)
    honest = protect_by_microaggregation._clustering_task

    def failing(*of_this_group):
        return replace(honest(*of_this_group), min_diversity=9)

    with monkeypatch.context() as patched:
        patched.setattr(protect_by_microaggregation, "_clustering_task", failing)
        with pytest.raises(InputRejected, match="min_diversity"):
            run(spark, spec)
    assert killed == []
    with pytest.raises(Killed):
        run(spark, spec)
    (protected,) = killed
    assert len(protected) == 70
    truncate_what_is_left(tmp_path)
    with pytest.raises(Killed):
        run(spark, spec)
    pd.testing.assert_frame_equal(*killed)


def test_spark_exceptions_are_not_logged_by_pyspark(spark, monkeypatch):
    logged = []
    monkeypatch.setattr(logging.Logger, "handle", lambda _, record: logged.append(record))
    with pytest.raises(AnalysisException):
        spark.range(1).select(column("no such column"))
    assert not logged


def test_input_that_changes_while_it_is_read_is_not_published(spark, tmp_path, monkeypatch):
    persons(60, seed=1).to_parquet(tmp_path / "data", index=False)
    spec = specification(tmp_path)
    keep = microguard.pipelines.admission.keep_fingerprint

    def changed(*arguments):
        keep(*arguments)
        persons(60, seed=2).to_parquet(tmp_path / "data", index=False)

    monkeypatch.setattr(microguard.pipelines.admission, "keep_fingerprint", changed)
    with pytest.raises((ProtectionFailed, InputRejected), match=r"changed during the run|cannot be read"):
        run(spark, spec, ())
    assert not (tmp_path / "lake").exists()
    monkeypatch.undo()
    assert "Published" in run(spark, spec, ())[0].summary()


def test_groups_that_jointly_identify_all_records_need_acceptance_by_a_steward(spark, tmp_path):
    persons(60).to_parquet(tmp_path / "data", index=False)
    roles = {"age": ROLES["age"], "income": ROLES["income"]}
    roles |= {name: {"role": "identifier"} for name in ROLES if name not in roles}
    grouped = {"groups": [{"name": name, "variables": [name]} for name in ("age", "income")]}
    grouped["method"] = {"effort": "fast"}
    accepted = dict.fromkeys(("max_unique_published", "max_homogeneous"), "a test")
    with pytest.raises(GateRefused, match=r"(?s)unique with all published.*the groups of variables as one"):
        run(spark, specification(tmp_path, roles, **grouped, quality={"accept": accepted}))
    answer, areas = run(spark, specification(tmp_path, roles, **grouped), ("uniques_published",))
    assert "Published" in answer.summary()
    assert quality(areas)["uniques_published"]["jointly"] > 0


@pytest.mark.parametrize(("few", "disclosed"), [(1, 0), (2, 3)])
def test_published_numbers_of_records_are_multiples_of_k(spark, tmp_path, few, disclosed):
    frame = persons(60)
    frame.loc[frame.index[:few], "region"] = "tiny"
    frame.to_parquet(tmp_path / "data", index=False)
    chosen = {"blocking": {"small_regions": "suppress"}, "publish": {"disclose": ["records_suppressed"]}}
    _, areas = run(spark, specification(tmp_path, **chosen), ())
    manifest = json.loads((areas.public.release(areas.public.current()) / "manifest.json").read_text())
    assert manifest["disclosed"] == {"records_suppressed": disclosed}
