"""Tests of workbench figures: exact counts, and estimates from blocks with a correct error."""

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.workbench import blocks
from microguard.pipelines.workbench import files as file_digests
from microguard.pipelines.workbench.blocks import Drawn, Estimate, Records
from microguard.pipelines.workbench.clustering import JOINTLY, Clustering, Counts
from microguard.pipelines.workbench.data import Data, recoded
from microguard.pipelines.workbench.figures import CHANGED, LOSS, Limit
from microguard.pipelines.workbench.files import Files
from microguard.pipelines.workbench.preview import preview
from microguard.pipelines.workbench.used_records import UsedRecords, joined
from microguard.schemas.errors import InputRejected
from microguard.schemas.requirements.requirement import MetricKey, Requirement
from microguard.schemas.specification.read import build_specification
from microguard.schemas.specification.sections import Variable

RECORDS = 24_000


def survey(records=RECORDS, seed=1):
    random = np.random.default_rng(seed)
    region = random.integers(0, 4, records)
    return pd.DataFrame(
        {
            "region": region.astype(str),
            "age": random.integers(0, 95, records) + 0.0,
            "income": random.lognormal(7 + 0.2 * region, 1, records).round(),
            "sex": random.choice(["f", "m"], records),
            "illness": random.choice(list("abcdefgh"), records),
            "hours": random.integers(0, 9, records),
        }
    )


def specification(folder, method=None, variables=None, **sections):
    lines = {
        "region": {"role": "region"},
        "age": {"role": "quasi_identifier", "kind": "numeric"},
        "income": {"role": "quasi_identifier", "kind": "numeric"},
        "sex": {"role": "quasi_identifier", "kind": "nominal"},
        "illness": {"role": "sensitive", "kind": "nominal"},
        "hours": {"role": "other"},
    }
    content = {
        "release": {"name": "survey", "k": 3},
        "input": {"path": "survey.parquet"},
        "variables": lines | (variables or {}),
        "method": {"effort": "fast"} | (method or {}),
        "publish": {"path": "lake", "evidence": "evidence"},
    } | sections
    return build_specification(content, folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("survey")
    survey().to_parquet(folder / "survey.parquet", index=False)
    return folder


@pytest.fixture(scope="module")
def data(folder):
    return Data(str(folder / "survey.parquet"))


def test_loss_of_one_number_is_not_reported_as_exact_if_two_seeds_agree(data, folder):
    """One number is clustered optimally for every seed; the means of a run have another seed."""
    lines = {name: {"role": "identifier"} for name in ("region", "income", "sex", "illness", "hours")}
    lines["age"] = {"role": "quasi_identifier", "kind": "numeric"}
    for method in ({}, {"representative": "median"}):
        for each in preview(data, specification(folder, method, lines)).losses.values():
            assert each.error > 0


def test_previews_with_equal_figures_compare_as_equal(data, folder):
    """A page compares previews after each change, also after a change without effect on the figures."""
    one, other = (preview(data, specification(folder)) for _ in range(2))
    assert one == one
    assert one != other


def test_preview_counts_before_protection_are_exact(data, folder):
    found = preview(data, specification(folder))
    sizes = survey().groupby(["region", "age", "income", "sex"]).size()
    assert found.counts == {"all": Counts(len(sizes), int(sizes[sizes < 3].sum()), int((sizes == 1).sum()))}


def test_preview_estimates_of_some_blocks_cover_the_figures_of_all_blocks(data, folder, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 500)
    whole = preview(data, specification(folder))
    assert whole.clustered == RECORDS
    for each in whole.metrics.values():  # a run uses another seed, so no figure is exact
        assert 0 < each.error < max(0.1 * each.value, 0.005)
    monkeypatch.setattr(blocks, "WORK", 30_000)
    some = preview(data, specification(folder))
    assert some.clustered < RECORDS / 2
    for key in (LOSS, CHANGED, JOINTLY, MetricKey("homogeneous", "illness")):
        assert abs(some.metrics[key].value - whole.metrics[key].value) <= some.metrics[key].error
        assert some.metrics[key].error > 0
    for key in (LOSS, MetricKey("homogeneous", "illness")):
        assert some.metrics[key].error < some.metrics[key].value


def test_preview_does_not_depend_on_the_order_of_records(data, folder, tmp_path):
    survey().sample(frac=1, random_state=3).to_parquet(tmp_path / "survey.parquet", index=False)
    other = preview(Data(str(tmp_path / "survey.parquet")), specification(tmp_path))
    found = preview(data, specification(folder))
    assert other.metrics == found.metrics
    assert other.counts == found.counts


def test_preview_loss_and_risk_change_with_larger_k_and_coarser_values(data, folder):
    first = preview(data, specification(folder))
    spec = specification(folder)
    larger = spec.model_copy(update={"release": spec.release.model_copy(update={"k": 10})})
    assert preview(data, larger).metrics[LOSS].value > first.metrics[LOSS].value
    bands = {"age": {"role": "quasi_identifier", "kind": "ordinal", "bands": [18, 65]}}
    coarse = preview(data, specification(folder, variables=bands))
    assert coarse.counts["all"].uniques < first.counts["all"].uniques
    assert sorted(coarse.names["age"]) == ["18 to under 65", "65 and over", "under 18"]


def test_corrected_loss_lies_between_search_and_construction(data, folder):
    shown = []
    found = preview(data, specification(folder, {"effort": "standard"}), shown.append)
    (fast,) = shown
    assert (fast.effort, found.effort) == ("fast", "standard")
    loss = found.metrics[LOSS]
    assert loss.value < fast.metrics[LOSS].value
    assert loss.value + loss.error >= fast.metrics[LOSS].value


def test_preview_proposes_a_remedy_for_exceeded_limits(data, folder):
    found = preview(data, specification(folder))
    failing = {each.requirement.key: each.failure for each in found.limits if each.failure}
    assert failing[JOINTLY].line.startswith("[quality] accept = { max_unique_jointly")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ({"top_code": 30, "bottom_code": 10}, [10, 17, 30, np.nan]),
        ({"round_to": 5}, [5, 15, 35, np.nan]),
        ({"missing": [17]}, [3, np.nan, 36, np.nan]),
    ],
)
def test_preview_recodes_numbers_as_a_run_does(line, expected):
    values = pd.Series([3.0, 17.0, 36.0, np.nan])
    variable = Variable(role="quasi_identifier", kind="numeric", **line)
    np.testing.assert_array_equal(recoded("x", values, variable, None), expected)


def test_preview_reads_years_and_missing_codes_as_a_run_does():
    date = Variable(role="quasi_identifier", kind="numeric", date="year")
    values = pd.Series(["15011987", "19870115", "1.2.1987", None])
    np.testing.assert_array_equal(recoded("x", values, date, None, None), [np.nan, 1987, 1987, np.nan])
    coded = Variable(role="quasi_identifier", kind="nominal", missing=["97"])
    with pytest.raises(InputRejected, match=r"variables.x.missing: expected numbers"):
        recoded("x", pd.Series([97.0, 3.0]), coded, None, "bigint")
    assert recoded("x", pd.Series([97.0, 3.0]), coded, None, None).isna().tolist() == [True, False]
    number = Variable(role="quasi_identifier", kind="nominal", missing=[97])
    found = recoded("x", pd.Series(["97.0", " 97", "b"]), number, None, None)
    assert found.isna().tolist() == [True, True, False]


def test_estimated_totals_cover_the_totals_of_all_blocks_for_skewed_sums():
    random = np.random.default_rng(5)
    inside = 0
    for _ in range(300):
        spreads = random.lognormal(3, 2, 200)
        sums = spreads * random.uniform(0.05, 0.15, 200)
        drawn = Drawn.from_spreads(spreads, 40)
        found = drawn.total(sums[drawn.all], spreads)
        inside += abs(found.value - sums.sum()) <= found.error
        assert found.error < 0.2 * found.value
    assert 0.9 <= inside / 300 < 1
    whole = Drawn.from_spreads(spreads, 200)
    assert whole.total(sums[whole.all], spreads) == Estimate(pytest.approx(sums.sum()))


def test_preview_detects_a_replaced_file(tmp_path):
    path = tmp_path / "survey.parquet"
    survey(300).to_parquet(path, index=False)
    data = Data(str(path))
    assert not data.files.is_replaced()
    survey(300, seed=2).to_parquet(path, index=False)
    assert data.files.is_replaced()
    path.unlink()
    assert data.files.is_replaced()


def test_preview_detects_an_added_part_of_a_folder_and_a_new_snapshot_of_a_table(tmp_path):
    survey(30).to_parquet(tmp_path / "part-1.parquet", index=False)
    files = Files(str(tmp_path))
    assert not files.is_replaced()
    survey(30).to_parquet(tmp_path / "part-2.parquet", index=False)
    assert files.is_replaced(read=False)
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(tmp_path / "lake", survey(30))
    files = Files(str(tmp_path / "lake"))
    assert not files.is_replaced()
    deltalake.write_deltalake(tmp_path / "lake", survey(30), mode="append")
    assert files.is_replaced(read=False)


def test_preview_reads_unchanged_files_again_only_on_request(tmp_path, monkeypatch):
    path = tmp_path / "survey.csv"
    path.write_text("a,b\n1,2\n")
    files = Files(str(path))
    read = []
    digest = file_digests.digest_of
    monkeypatch.setattr(file_digests, "digest_of", lambda named: read.append(named) or digest(named))
    assert not files.is_replaced(read=False)
    assert read == []
    assert not files.is_replaced()
    assert len(read) == 1
    path.write_text("a,b\n1,3\n")  # the new file has the same size
    assert files.is_replaced(read=False)


def test_preview_total_is_exact_only_if_everything_is_counted():
    sizes = np.array([9.0, 8, 7, 6, 5, 4, 3, 2])
    drawn = Drawn.from_spreads(sizes, 4)
    uncounted = sorted(set(drawn.rest) - set(drawn.some))
    nothing = np.zeros(4)
    # some records in the drawn blocks are not counted
    constant = np.where(np.isin(np.arange(8), drawn.all), 0.0, sizes)
    worst = constant[uncounted].sum()
    assert drawn.total(nothing, constant) == Estimate(0.0, worst)
    found = drawn.total(nothing, sizes)
    assert 0 < found.error <= sizes[uncounted].sum()
    assert drawn.total(nothing, np.zeros(8)).error == 0  # these records cannot lose any value
    assert Estimate(0.0, 2.0).times(Estimate(0.5, 0.1)).error == 1.0


@pytest.mark.parametrize(
    ("value", "error", "verdict"),
    [(0.1, 0.05, "kept"), (0.19, 0.02, "within the error"), (0.21, 0.02, "within the error"),
     (0.3, 0.05, "exceeded"), (0.21, 0.0, "exceeded"), (0.2, 0.0, "kept")],
)  # fmt: skip
def test_limit_is_compared_with_the_figure_and_its_error(value, error, verdict):
    limit = Limit.judge(Requirement(LOSS, "lose less", at_most=0.2), Estimate(value, error))
    assert limit.verdict == verdict
    assert (limit.failure is None) == (verdict == "kept")


@pytest.mark.parametrize(
    ("method", "promised"), [("microaggregation", True), ("rank_swapping", False), ("swapping", False)]
)
def test_preview_states_k_anonymity_only_if_the_method_guarantees_it(data, folder, method, promised):
    spec = specification(folder)
    chosen = spec.method.model_copy(update={"name": method})
    found = preview(data, spec.model_copy(update={"method": chosen}))
    assert (found.promises_k, found.is_of_method) == (promised, method == "microaggregation")


def test_preview_states_the_number_of_small_strata(tmp_path):
    random = np.random.default_rng(2)
    frame = pd.DataFrame(random.normal(size=(400, 2)), columns=["x", "y"])
    frame.iloc[0, 0] = frame.iloc[1, 1] = np.nan
    frame.to_parquet(tmp_path / "survey.parquet", index=False)
    content = {
        "release": {"name": "survey", "k": 3},
        "input": {"path": "survey.parquet"},
        "variables": {name: {"role": "quasi_identifier", "kind": "numeric"} for name in frame},
        "method": {"effort": "fast"},
        "missing": {"numeric": "own_cluster"},
        "publish": {"path": "lake", "evidence": "evidence"},
    }
    spec = build_specification(content, tmp_path)
    found = preview(Data(str(tmp_path / "survey.parquet")), spec)
    assert any(note.startswith("2 records are in 2 strata") for note in found.notes)
    assert found.clustered == 398


def test_missing_patterns_of_many_variables_do_not_overflow():
    first, last = np.array([1, 0, 0, 0]), np.array([0, 0, 0, 1])
    patterns = [first, *[np.zeros(4, np.int64)] * 98, last]
    assert np.bincount(joined(patterns, 4)).tolist() == [2, 1, 1]


def test_preview_states_that_categories_are_clustered_as_nominal(data, folder):
    bands = {"age": {"role": "quasi_identifier", "kind": "ordinal", "bands": [18, 65]}}
    assert any("like nominal" in note for note in preview(data, specification(folder, variables=bands)).notes)


def test_blocks_of_a_variable_with_many_codes_need_little_memory():
    codes = np.arange(6_000) % 3_000
    records = Records(
        points=codes[:, np.newaxis].astype(float), nominal=np.array([True]), strata=np.zeros(6_000, np.int64),
        sensitive=np.zeros((6_000, 0), np.int64), weights=None, variable_weights=np.ones(1),
    )  # fmt: skip
    assert records._indicators(np.arange(6_000)).shape == (6_000, blocks.INDICATORS)
    assert sum(map(len, records.blocks(3))) == 6_000


def test_preview_counts_and_clusters_groups_one_by_one(data, folder):
    groups = [{"name": "person", "variables": ["age", "sex"]}, {"name": "money", "variables": ["income"]}]
    found, together = (
        preview(data, specification(folder, groups=groups)),
        preview(data, specification(folder)),
    )
    frame = survey()
    for name, columns in (("person", ["region", "age", "sex"]), ("money", ["region", "income"])):
        sizes = frame.groupby(columns).size()
        assert found.counts[name].classes == len(sizes)
        assert found.counts[name].below_k == sizes[sizes < 3].sum()
    assert found.losses.keys() == together.losses.keys()
    for name in found.losses:  # fewer variables are protected together
        assert found.losses[name].value < together.losses[name].value
    assert found.metrics.keys() == {LOSS, CHANGED}
    assert any("Groups are protected separately" in note for note in found.notes)


def test_preview_reads_a_corrected_hierarchy_again(data, folder):
    levels = folder / "illness.csv"
    variable = {
        "illness": {"role": "quasi_identifier", "kind": "nominal", "hierarchy": "illness.csv", "level": 2}
    }
    found = []
    for coarse in ("ab", "abcd"):
        rows = [f"{code},{coarse[position % len(coarse)]}" for position, code in enumerate("abcdefgh")]
        levels.write_text("\n".join(["code,group", *rows]) + "\n")
        found.append(preview(data, specification(folder, variables=variable)))
    assert [list(each.names["illness"]) for each in found] == [["a", "b"], ["a", "b", "c", "d"]]
    assert found[0].counts["all"].classes < found[1].counts["all"].classes


def test_preview_clusters_numbers_with_missing_values_separately(tmp_path):
    frame = survey(800).drop(columns="region")
    frame.loc[::4, "income"] = np.nan
    frame.to_parquet(tmp_path / "survey.parquet", index=False)
    spec = specification(
        tmp_path, variables={"region": {"role": "identifier"}}, missing={"numeric": "own_cluster"}
    )
    found = preview(Data(str(tmp_path / "survey.parquet")), spec)
    assert found.clustered == 800
    assert np.isnan(found.after["income"]).sum() == 200
    assert 0 < found.losses["income"].value < 1
    assert len(np.unique(found.after["age"])) < 800 / 3


def test_stated_errors_cover_the_figures_of_other_seeds(tmp_path):
    survey(800).to_parquet(tmp_path / "survey.parquet", index=False)
    spec = specification(tmp_path)
    used = UsedRecords(Data(str(tmp_path / "survey.parquet")), spec)
    clustering = Clustering(used, spec.quasi_identifiers)
    first = clustering.clustered()
    stated = clustering.losses(first) | clustering.risks(first)
    inside, differing = [], 0
    for seed in range(100, 115):
        labels = [clustering.records.cluster(each, 3, "fast", 1, 1.0, seed) for each in clustering.blocks]
        other = clustering._published(clustering.blocks, labels, seed)
        figures = clustering._lost(other) | clustering._flags(other)
        for key, of_records in figures.items():
            inside.append(abs(of_records.mean() - stated[key].value) <= stated[key].error)
            differing += of_records.mean() != stated[key].value
    assert np.mean(inside) > 0.98
    # control: an error of 0, as earlier versions stated it, covers hardly any figure
    assert differing > len(inside) / 2
