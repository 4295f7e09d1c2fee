"""Tests of the protection of one block, and of its report if the method fails."""

import json
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from microguard.pipelines.intake.fixed_point import Scale
from microguard.pipelines.publication.staging.folder import FolderStagingArea
from microguard.pipelines.records import block as protect
from microguard.pipelines.records import sampling_weights as weighing_module
from microguard.pipelines.records.block import protect_block
from microguard.pipelines.records.blocks import BLOCK, Plan
from microguard.pipelines.records.coordinates import Coordinates
from microguard.pipelines.records.sampling_weights import SamplingWeights
from microguard.sdc.algorithms.microaggregation import (
    ColumnGenerationParameters,
    ProjectionParameters,
    VmdavParameters,
)
from microguard.sdc.microaggregation import microaggregate

from tests.pipelines.records.one_block import block, clustering, plan

CANARY = "CANARY"


def test_block_is_clustered_with_the_given_parameters():
    income = [0, 10, 14, 100, 111, 200, 203, 207]
    sizes = {}
    for gain in (0.0, 0.2):
        task = clustering(algorithm="vmdav", parameters=VmdavParameters(gain=gain))
        protected, _, _ = protect_block(block(income, pa.float64()), task)
        sizes[gain] = sorted(protected["income"].value_counts().field("counts").to_pylist())
    assert sizes == {0.0: [2, 2, 2, 2], 0.2: [2, 3, 3]}


def test_block_is_projected_on_the_named_variable_if_it_has_values():
    rent = [4.0, 1.0, 3.0, 2.0]
    scales = {"income": Scale(2.0, 1.0, 4), "rent": Scale(2.0, 1.0, 4)}
    named = ProjectionParameters(variable="rent")
    task = clustering(plan=plan(scales), algorithm="projection-pv", parameters=named)
    protected, report, _ = protect_block(block([1.0, 2.0, 9.0, 12.0], rent=rent), task)
    assert report["status"] == "done"
    assert protected["rent"].to_pylist() == [3.5, 1.5, 3.5, 1.5]
    table = pa.table({"income": [1.0, 2.0, 9.0, 12.0], "rent": pa.nulls(4, pa.float64()), BLOCK: [0] * 4})
    protected, report, _ = protect_block(table, task)
    assert (report["status"], report.get("fallback")) == ("done", None)
    assert protected["income"].to_pylist() == [1.5, 1.5, 10.5, 10.5]


def test_block_reports_the_loss_of_each_heuristic_and_refuses_the_edge_model_of_many_records():
    edges = ColumnGenerationParameters(pricing="edge-model")
    task = clustering(effort="standard", algorithm="column-generation", parameters=edges)
    values = np.random.default_rng(0).normal(size=41).tolist()
    _, report, _ = protect_block(block(values[:10]), task)
    assert set(report["sse_by_heuristic"]) == {"mdav", "vmdav", "simple", "spanning-tree"}
    assert min(report["sse_by_heuristic"].values()) == pytest.approx(report["objective"])
    _, report, _ = protect_block(block(values), task)
    assert report["status"] == "unsupported"
    assert "at most 40 records, found 41" in report["why"]


def test_four_records_become_two_pairs_with_their_means():
    protected, report, moments = protect_block(block([1, 2, 9, 12], pa.int32()), clustering())
    assert protected["income"].to_pylist() == [2, 2, 10, 10]  # rounds half to even
    assert protected.schema.field("income").type == pa.int32()
    assert report["status"] == "done"
    assert report["clusters"] == 2
    assert float(moments.sse[0]) == 1 + 0 + 1 + 4  # the loss is computed from the published (rounded) values


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (
            pa.decimal128(6, 1),
            [Decimal("0.1"), Decimal("0.2"), Decimal("9.1"), Decimal("9.4")],
            ["0.2", "9.2"],
        ),
        (pa.int64(), [2**60 + 1, 2**60 + 3, 0, 2], [2**60 + 2, 1]),
        (pa.float64(), [0.25, 0.75, 9.0, 9.5], [0.5, 9.25]),
    ],
)
def test_means_keep_the_type_and_scale_of_their_column(kind, values, expected):
    protected, _, _ = protect_block(block(values, kind), clustering())
    found = {str(value) for value in protected["income"].to_pylist()}
    assert found == {str(value) for value in expected}


def test_other_columns_remain_with_their_record():
    table = block([9.0, 1.0, 12.0, 2.0], note=["c", "a", None, "b"])
    protected, _, _ = protect_block(table, clustering())
    assert protected["note"].to_pylist() == ["c", "a", None, "b"]
    assert protected["income"].to_pylist() == [10.5, 1.5, 10.5, 1.5]


def test_variable_missing_in_the_whole_block_remains_missing():
    table = pa.table({"income": [1.0, 2.0, 9.0, 12.0], "rent": pa.nulls(4, pa.float64()), BLOCK: [0] * 4})
    scales = {"income": Scale(2.0, 1.0, 4), "rent": Scale(0.0, 1.0, 0)}
    protected, report, moments = protect_block(table, clustering(plan=plan(scales)))
    assert report["status"] == "done"
    assert protected["rent"].null_count == 4
    assert moments.records.tolist() == [4, 0]


@pytest.mark.parametrize("counted", [None, "home"])
def test_block_without_numbers_is_one_class_if_records_are_weighted_or_units_are_counted(counted):
    table = pa.table({"rent": pa.nulls(4, pa.float64()), "weight": [9.0, 1.0, 1.0, 1.0], BLOCK: [0] * 4})
    table = table.append_column("home", pa.array(["a", "b", "b", "c"]))
    weighs = sampling_weights(name="weight" if counted is None else None, counted=counted)
    task = clustering(plan=plan({"rent": Scale(0.0, 1.0, 0)}), sampling_weights=weighs, counted=counted)
    protected, report, _ = protect_block(table, task)
    assert (report["status"], report["clusters"]) == ("done", 1)
    assert protected["rent"].null_count == 4


def test_block_search_of_a_long_run_ends_after_its_share_of_the_work():
    random = np.random.default_rng(3)
    table = block(random.normal(size=300).tolist(), rent=random.normal(size=300))
    moves = {}
    for records in (300, 300_000):
        scales = {"income": Scale(0.0, 1.0, 300), "rent": Scale(0.0, 1.0, 300)}
        task = clustering(effort="standard", plan=plan(scales, records))
        moves[records] = protect_block(table, task)[1]["work"]["moves"]
    assert moves[300] > 2 * moves[300_000]


def test_mixed_block_publishes_an_occurring_combination_of_modes():
    table = block([1.0, 1.1, 1.2, 9.0, 9.1, 9.2], sex=["f", "f", "m", "m", "m", None])
    protected, _, _ = protect_block(table, clustering(k=3, nominal=("sex",)))
    assert protected["sex"].to_pylist() == ["f", "f", "f", "m", "m", "m"]


def weighted(**weights):
    scales = {"income": Scale(0.0, 1.0, 8)}
    coordinates = Coordinates(scales, {}, weights)
    return Plan(pa.table({"records": [4], "__first": [0], "__tree": [-1]}), (), coordinates, 1)


def test_records_are_clustered_by_the_variable_with_the_larger_weight():
    table = block([0.0, 1.0, 0.0, 1.0], sex=["f", "f", "m", "m"])
    for weight, kept in ((4.0, "sex"), (0.25, "income")):
        task = clustering(plan=weighted(sex=weight), nominal=("sex",), algorithm="mdav")
        protected, report, moments = protect_block(table, task)
        assert protected[kept].to_pylist() == table[kept].to_pylist()
        assert report["objective"] == pytest.approx(1.0 if kept == "sex" else 0.25)
        assert float(moments.sse[0]) == pytest.approx(1.0 if kept == "sex" else 0.0)


def sampling_weights(**changes):
    return SamplingWeights(**{"name": "weight", "mean": 1.0, "k": 2, "counted": None} | changes)


def test_means_losses_and_clusters_are_weighted_and_weighted_totals_are_preserved():
    weights = np.array([1.0, 2.0, 3.0, 2.0])
    table = block([1.0, 2.0, 9.0, 12.0], weight=weights)
    protected, report, moments = protect_block(table, clustering(sampling_weights=sampling_weights()))
    after = protected["income"].to_numpy()
    assert after == pytest.approx([5 / 3, 5 / 3, 51 / 5, 51 / 5])
    assert weights @ after == pytest.approx(weights @ np.array([1.0, 2.0, 9.0, 12.0]))
    loss = weights @ (after - np.array([1.0, 2.0, 9.0, 12.0])) ** 2
    assert float(moments.sse[0]) == pytest.approx(loss)
    assert report["objective"] == pytest.approx(loss)
    assert report["file_bound"] is None
    assert report["trimmed"] == 0


def test_record_with_nearly_all_the_weight_is_not_published_unchanged(monkeypatch):
    """Attack: infer the record with the largest weight of each class from the mean and the modes."""
    random = np.random.default_rng(5)
    income, sex = random.normal(0.0, 100.0, 60).round(), random.choice(["f", "m", "x"], 60)
    weights = random.uniform(1.0, 2.0, 60)
    heavy = np.argsort(income)[5::10]
    weights[heavy] = 1e6
    table = block(income, pa.float64(), sex=sex.tolist(), weight=weights)
    task = clustering(k=3, nominal=("sex",), sampling_weights=sampling_weights(k=3))

    def found():
        protected, report, _ = protect_block(table, task)
        off = np.abs(protected["income"].to_numpy() - income)[heavy]
        return off, np.mean(np.array(protected["sex"].to_pylist())[heavy] == sex[heavy]), report

    off, same, report = found()
    assert report["trimmed"] > 0
    assert np.median(off) > 1.0
    monkeypatch.setattr(weighing_module, "spread", lambda points, labels, *_: labels)
    monkeypatch.setattr(weighing_module, "trimmed", lambda weights, *_: weights)
    off, same_without, _ = found()
    assert np.all(off < 0.01)
    assert same_without == 1.0 > same


def test_weights_of_a_unit_are_one_share():
    table = block([0.0, 1.0, 2.0, 3.0], weight=[4.0, 4.0, 1.0, 1.0], home=["a", "a", "b", "c"])
    for counted, shown in (("home", (4.0 * 0.5 + 2.0 + 3.0) / 6), (None, (4.0 + 2.0 + 3.0) / 10)):
        task = clustering(k=3, counted=counted, sampling_weights=sampling_weights(k=3, counted=counted))
        protected, _, _ = protect_block(table, task)
        assert protected["income"].to_pylist() == pytest.approx([shown] * 4)


def test_unit_with_many_records_never_forms_a_class_alone():
    """Three units have eight, one and one records, so that most records are of one unit."""
    table = block([100.0] * 8 + [0.0, 50.0], sex=["f"] * 8 + ["m", "m"], home=["a"] * 8 + ["b", "c"])
    own = {
        "k": 3,
        "counted": "home",
        "nominal": ("sex",),
        "sampling_weights": sampling_weights(name=None, counted="home", k=3),
    }
    for representative, shown in (("auto", 400 / 6 + 50 / 6), ("median", 50.0)):
        protected, report, moments = protect_block(table, clustering(**own, representative=representative))
        assert protected["income"].to_pylist() == pytest.approx([shown] * 10)
        assert protected["sex"].to_pylist() == ["m"] * 10
        assert report["trimmed"] == 8
        assert moments.records.tolist() == [10]  # losses always count records


def test_block_with_changed_weights_is_solved_again(tmp_path):
    task = clustering(resume=(FolderStagingArea(tmp_path), "blocks"), sampling_weights=sampling_weights())
    for weights, resumed in (([1.0] * 4, False), ([1.0] * 4, True), ([1.0, 1.0, 1.0, 2.0], False)):
        _, report, _ = protect_block(block([1.0, 2.0, 9.0, 12.0], weight=weights), task)
        assert report.get("resumed", False) == resumed


def test_ordinal_records_are_clustered_with_neighbours_and_get_the_lower_median():
    order = ("child", "young", "adult", "old")
    ordered = plan({})
    ordered = replace(ordered, coordinates=replace(ordered.coordinates, orders={"age": order}))
    values = ["young", "old", "child", "adult", "old", "young"]
    table = pa.table({"age": values, BLOCK: [0] * 6})
    protected, report, _ = protect_block(table, clustering(k=3, plan=ordered, nominal=("age",)))
    assert report["status"] == "done"
    assert protected["age"].to_pylist() == ["young", "old", "young", "old", "old", "young"]
    strange = pa.table({"age": [*values[:5], CANARY], BLOCK: [0] * 6})
    protected, report, _ = protect_block(strange, clustering(k=3, plan=ordered, nominal=("age",)))
    assert (len(protected), report["status"]) == (0, "unsupported")
    assert CANARY not in json.dumps(report)


def test_loss_is_unweighted_and_the_objective_is_weighted():
    values = [1.0, 2.0, 9.0, 12.0]
    _, plain, before = protect_block(block(values), clustering())
    _, report, moments = protect_block(block(values), clustering(plan=weighted(income=7.0)))
    assert float(moments.sse[0]) == float(before.sse[0])
    assert report["objective"] == pytest.approx(7.0 * plain["objective"])
    assert report["file_bound"] == pytest.approx(7.0 * plain["file_bound"])


def test_block_of_equal_records_is_one_cluster():
    protected, report, _ = protect_block(block([3.0] * 5), clustering())
    assert protected["income"].to_pylist() == [3.0] * 5
    assert report["optimal"] is True


def test_too_small_block_returns_no_record_and_reports_its_size():
    protected, report, moments = protect_block(block([1.0]), clustering())
    assert (len(protected), report["status"], moments) == (0, "too few", None)


def test_failing_method_is_replaced_by_a_fallback_and_named(monkeypatch):
    honest = protect.microaggregate

    def failing(points, k, **options):
        if options["algorithm"] != "mdav":
            raise ZeroDivisionError(CANARY)
        return honest(points, k, **options)

    monkeypatch.setattr(protect, "microaggregate", failing)
    protected, report, _ = protect_block(block([1.0, 2.0, 9.0, 12.0]), clustering())
    assert (report["fallback"], report["why"]) == ("mdav", "ZeroDivisionError")
    assert len(set(protected["income"].to_pylist())) == 2


def test_error_of_a_block_that_cannot_be_protected_contains_no_value(monkeypatch):
    def failing(points, k, **options):
        raise ZeroDivisionError(CANARY)

    monkeypatch.setattr(protect, "microaggregate", failing)
    protected, report, moments = protect_block(block([1.0, 2.0, 9.0, 12.0]), clustering())
    assert (len(protected), report["status"], moments) == (0, "failed", None)
    assert CANARY not in json.dumps(report)


def test_unsupported_variables_are_refused_without_a_fallback():
    _, report, _ = protect_block(block([1.0, 2.0, 9.0, 12.0]), clustering(algorithm="nonsense"))
    assert report["status"] == "unsupported"


def test_clusters_are_merged_until_they_are_diverse():
    table = block([1.0, 2.0, 9.0, 12.0], diagnosis=["a", "a", "a", "b"])
    protected, report, _ = protect_block(table, clustering(min_diversity=2, sensitive=("diagnosis",)))
    assert protected["income"].to_pylist() == [6.0] * 4
    assert report["diversity"] == {"diagnosis": 2}


def test_block_may_violate_diversity_if_its_sensitive_values_are_withheld():
    table = block([1.0, 2.0, 9.0, 12.0], diagnosis=pa.nulls(4, pa.string()))
    diverse = {"min_diversity": 2, "sensitive": ("diagnosis",)}
    assert protect_block(table, clustering(**diverse))[1]["status"] == "too few values"
    protected, report, _ = protect_block(table, clustering(**diverse, withholds=True))
    assert protected["income"].to_pylist() == [1.5, 1.5, 10.5, 10.5]
    assert "diversity" not in report


def test_diversity_requirements_are_hidden_from_methods_and_household_requirements_are_passed(monkeypatch):
    table = block(range(12), home=[*range(6)] * 2, diagnosis=["a", "b", "c"] * 4)
    asked = {}

    def solved(values, k, **options):
        asked.update(options)
        return microaggregate(values, k, **options)

    monkeypatch.setattr(protect, "microaggregate", solved)
    for changes in ({"min_diversity": 2}, {"min_diversity": 1}):
        protect_block(table, clustering(counted="home", sensitive=("diagnosis",), **changes))
        hidden = [1] if changes["min_diversity"] == 2 else []
        assert asked["diversity"].hidden.tolist() == hidden


def test_block_that_lacks_every_number_is_one_cluster():
    table = pa.table({"income": pa.nulls(4, pa.float64()), BLOCK: [0] * 4})
    protected, report, _ = protect_block(table, clustering())
    assert (report["status"], report["file_bound"]) == ("done", 0.0)
    assert protected["income"].null_count == 4


def test_every_cluster_has_k_households_if_k_counts_households():
    incomes, homes = [1, 1, 1, 2, 5, 6, 9, 9, 10, 11], [1, 1, 1, 2, 3, 4, 5, 5, 5, 6]
    records = block(incomes, pa.int32(), home=homes)
    by_record, _, _ = protect_block(records, clustering(sensitive=()))
    by_household, report, _ = protect_block(records, clustering(counted="home"))
    assert report["status"] == "done"
    assert _fewest_homes(by_record) < 2 <= _fewest_homes(by_household)
    assert by_household["home"].equals(records["home"])


def test_report_of_merged_clusters_states_no_proof_of_the_clusters_before_merging():
    incomes, homes = [1, 2, 4, 9, 12, 17], [1, 1, 2, 3, 3, 4]
    records = block(incomes, pa.float64(), home=homes)
    _, proved, _ = protect_block(records, clustering(effort="exact"))
    assert proved["optimal"]
    assert proved["objective"] == pytest.approx(proved["lower_bound"])
    merged, report, _ = protect_block(records, clustering(effort="exact", counted="home"))
    squares = (merged.to_pandas()["income"] - incomes) ** 2
    # the scale of every variable in the plan is one
    assert report["objective"] == pytest.approx(squares.sum())
    assert report["lower_bound"] == proved["lower_bound"]
    assert report["gap"] == pytest.approx(1 - proved["lower_bound"] / squares.sum())
    assert not report["optimal"]


def test_block_of_too_few_households_is_solved_with_its_stratum():
    crowded = block(list(range(50)), pa.int32(), home=[7] * 50)
    protected, report, moments = protect_block(crowded, clustering(counted="home"))
    assert (len(protected), report["status"], moments) == (0, "too few", None)


def test_block_of_too_few_sensitive_values_is_solved_with_its_stratum():
    table = block([1.0, 2.0, 9.0, 12.0], diagnosis=[CANARY] * 4)
    protected, report, moments = protect_block(table, clustering(min_diversity=2, sensitive=("diagnosis",)))
    assert (len(protected), report["status"], moments) == (0, "too few values", None)
    assert CANARY not in json.dumps(report)


def _fewest_homes(protected):
    return protected.to_pandas().groupby("income")["home"].nunique().min()
