"""Tests of certificates: the evidence contains them by step and for the whole file, for every method."""

import json
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from microguard.pipelines.engine.versions import deciding_versions, in_words
from microguard.pipelines.measures.block_reports import OF_BLOCK, OF_FILE, block_table, collected
from microguard.pipelines.measures.certificates import CertificatesMeasure
from microguard.schemas.errors import ProtectionFailed

from tests.pipelines.microdata import persons, quality, run, specification

ROLES = {
    "region": {"role": "region"},
    **{name: {"role": "quasi_identifier", "kind": "nominal"} for name in ("sex", "job")},
}


def report(block, **certificates):
    steps = [
        {"step": name, "objective": "weight", "value": value, "lower_bound": bound, "optimal": False}
        | {"gap": None, "unproved": None if bound is not None else "heuristic"}
        for name, (value, bound) in certificates.items()
    ]
    return {
        "block": block,
        "records": 9,
        "status": "done",
        "objective": 4.0,
        "lower_bound": 1.0,
        "bound_of": OF_BLOCK,
        "certificates": steps,
        "seconds": 0.0,
    }


def test_certificates_state_whether_the_bound_is_of_blocks_or_of_the_file():
    whole = report(0) | {"whole_file": True, "bound_of": OF_FILE}
    del whole["block"]
    reports = collected([json.dumps(each) for each in (report(0), report(1), whole)], 0)
    assert (len(reports.blocks), len(reports.rows)) == (2, 3)
    table = block_table({"all": reports})
    assert table["bound_of"].to_pylist() == [OF_BLOCK, OF_BLOCK, OF_FILE]
    assert table["block"].to_pylist() == [0, 1, None]
    assert reports.of_file["bound_of"] == OF_FILE


def test_block_without_a_bound_states_the_reason():
    silent = report(0) | {"lower_bound": None, "stopped_by": "time"}
    table = block_table({"all": collected([json.dumps(silent)], 0)})
    assert (table["bound_of"].to_pylist(), table["unproved"].to_pylist()) == ([None], ["time"])


def taken(*blocks, records=9, variables=(), **whole):
    """Return the report section of a release of one clustering, from the reports of its blocks and of the
    file.
    """
    of_file = report(0) | {"whole_file": True, "bound_of": OF_FILE, "optimal": False} | whole
    del of_file["block"]
    reports = collected([json.dumps(each) for each in (*blocks, of_file)], 0)
    clusterings = [SimpleNamespace(name="all", variables=variables)]
    specification = SimpleNamespace(
        clusterings=clusterings, nominal=(), region=None, strategy=lambda group: "frequency"
    )
    errors = (SimpleNamespace(variables=("sex",), max_absolute_error=6),) if "sex" in variables else ()
    comparison = SimpleNamespace(
        specification=specification, reports={"all": reports}, records=records, table_errors=errors
    )
    return (CertificatesMeasure().compute(comparison) or {}).get("all")


def test_steps_are_summed_over_blocks_and_have_no_bound_if_one_block_has_no_bound():
    blocks = (
        report(0, partition=(5.0, 4.0), aggregation=(3.0, 2.0)),
        report(1, partition=(7.0, 5.0), aggregation=(2.0, None)),
    )
    whole, partition, aggregation = taken(*blocks)
    assert (whole.value, whole.lower_bound, whole.gap, whole.bound_of) == (4.0, 1.0, 0.75, OF_FILE)
    assert (partition.value, partition.lower_bound, partition.gap) == (12.0, 9.0, 0.25)
    assert (aggregation.value, aggregation.lower_bound, aggregation.unproved) == (5.0, None, "heuristic")
    assert partition.bound_of == OF_BLOCK


def test_certificate_has_the_largest_error_of_blocks_and_of_the_file():
    blocks = [report(number, safe=(2.0, 2.0)) for number in (0, 1)]
    for block in blocks:
        step = block["certificates"][0]
        step |= {"objective": "largest error above its allowance", "optimal": True}
    (_, together) = taken(*blocks, variables=("sex",))
    assert (together.value, together.lower_bound, together.gap) == (2.0, 2.0, 0.0)
    assert (together.file_value, together.blocks, together.bound_of) == (6.0, 2, OF_BLOCK)
    assert not together.optimal  # each block is optimal, and the file is not
    (_, alone) = taken(blocks[0], variables=("sex",))
    assert (alone.optimal, alone.blocks) == (True, 1)


def test_sum_of_weights_is_certified_for_the_file_and_a_chi_square_is_not():
    step = report(0, partition=(5.0, 5.0), aggregation=(3.0, 3.0))
    step["certificates"][1]["objective"] = "chi-square"
    _, partition, aggregation = taken(step, step | {"block": 1}, objective=9.0)
    assert (partition.value, partition.file_value) == (10.0, None)
    assert (aggregation.value, aggregation.file_value) == (6.0, 9.0)


def test_proved_optimum_is_kept_if_its_bound_is_lower_by_the_tolerance():
    (whole,) = taken(objective=4.0, lower_bound=4.0 - 1e-9, optimal=True)
    assert (whole.optimal, whole.gap) == (True, 0.0)
    (whole,) = taken(objective=4.0, lower_bound=3.0, optimal=False)
    assert (whole.optimal, whole.gap) == (False, 0.25)


def test_proof_for_the_records_of_one_update_is_not_stated_for_the_whole_release():
    assert taken(records=9) is not None
    assert taken(records=10) is None


def assert_certified(areas, steps):
    """The file has one bound; each block has one bound per step."""
    whole, *of_blocks = quality(areas)["certificates"]["all"]
    assert (whole["step"], whole["bound_of"]) == ("whole", OF_FILE)
    assert 0 < whole["lower_bound"] <= whole["value"]
    assert [step["step"] for step in of_blocks] == steps
    assert all(step["unproved"] == "heuristic" and step["bound_of"] == OF_BLOCK for step in of_blocks)
    rows = pq.read_table(areas.record(areas.public.current()) / "blocks.parquet")
    assert rows["bound_of"].to_pylist()[-1] == OF_FILE
    assert None not in rows["lower_bound"].to_pylist()


@pytest.mark.spark
def test_nominal_release_keeps_its_certificate(nominal_release):
    assert_certified(nominal_release.areas, [])


@pytest.mark.spark
def test_nominal_release_keeps_the_certificates_of_its_steps(spark, tmp_path):
    original = persons(90)
    original.rename(columns={"age": "job"})[["region", "sex", "job"]].astype(str).to_parquet(
        tmp_path / "data", index=False
    )
    method = {"algorithm": "own-hhg", "effort": "fast"}
    _, areas = run(spark, specification(tmp_path, ROLES, method=method), ("certificates",))
    assert_certified(areas, ["partition", "aggregation"])


def test_certificate_names_the_most_frequent_reasons_of_failed_blocks():
    reports = [report(block) | {"status": "failed", "why": f"reason {block // 2}"} for block in range(9)]
    with pytest.raises(ProtectionFailed) as failed:
        collected([json.dumps(each) for each in reports], 0)
    told = (
        "9 of 9 blocks could not be protected: reason 0 (2); reason 1 (2); reason 2 (2); and 2 more reasons."
    )
    assert str(failed.value).startswith(told)


def test_block_computed_by_other_solver_versions_is_not_published():
    here = in_words(deciding_versions())
    table = block_table({"all": collected([json.dumps(report(0) | {"software": here})], 0)})
    assert table["software"].to_pylist() == [here]
    mixed = [report(0) | {"software": here}, report(1) | {"software": "highspy 1.9.0"}]
    with pytest.raises(ProtectionFailed, match=r"1 of 2 blocks .* found highspy 1\.9\.0"):
        collected([json.dumps(each) for each in mixed], 0)
