"""Tests of `adjust` end to end: from records or cells to a published additive and protected table."""

from __future__ import annotations

import json
import re
import shutil
from decimal import Decimal
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.audit.release import audit
from microguard.pipelines.engine.files import checksum
from microguard.pipelines.publication.key import KEY_VARIABLE
from microguard.schemas.errors import GateRefused, InputRejected, ProtectionFailed, SpecificationError
from microguard.schemas.specification.read import build_specification, read_specification

from tests.pipelines.published_tables import example, tables
from tests.pipelines.turnover import records, specification
from tests.reference import reference_file


def evidence(content) -> tuple[dict, pd.DataFrame]:
    folder = Path(content["report"]).parent
    quality = json.loads((folder / "quality.json").read_text())
    return quality, pq.read_table(folder / "cells.parquet").to_pandas()


def assert_protected(cells: pd.DataFrame) -> None:
    """Assert that every sensitive cell deviates from its value by at least its protection level."""
    sensitive = cells[cells["sensitive"]]
    change = sensitive["published"] - sensitive["original"]
    assert len(sensitive)
    assert ((change >= sensitive["upper_protection"]) | (-change >= sensitive["lower_protection"])).all()


def assert_adds_up(frame: pd.DataFrame, levels: list[str], value: str, total: str = "Total") -> None:
    """Assert that every total of one dimension is exactly the sum of its parts."""
    others = [name for name in frame.columns if name not in (*levels, value)]
    for depth, level in enumerate(levels):
        parts = frame[(frame[level] != total) & (frame[levels[depth + 1 :]] == total).all(axis=1)]
        keys = [*others, *levels[:depth]]
        sums = parts.groupby(keys)[value].agg(lambda each: sum(each, Decimal(0))) if keys else None
        if sums is None:
            whole = frame[(frame[levels] == total).all(axis=1)][value]
            assert sum(parts[value], Decimal(0)) == whole.item()
            continue
        above = frame[(frame[levels[depth:]] == total).all(axis=1)].set_index(keys)[value]
        assert (above.loc[sums.index] == sums).all()


@pytest.mark.reference
def test_hierarchical_table_of_records_is_published_additive_and_protected(adjusted, tmp_path, monkeypatch):
    key = tmp_path / "key"
    key.write_bytes(sha256(b"0").digest())  # the first table with this method prints directions
    key.chmod(0o600)
    monkeypatch.setenv(KEY_VARIABLE, str(key))
    chosen = example("turnover_tables", tmp_path, "table.effort=fast")
    content = adjusted(chosen)
    quality, cells = evidence(content)
    assert quality["attacker"]["determined"] == 0
    (frame,) = tables(content)
    assert list(frame.columns) == ["a10", "a21", "a88", "nuts1", "nuts2", "nuts3", "turnover"]
    assert_adds_up(frame, ["a10", "a21", "a88"], "turnover")
    assert_adds_up(frame, ["nuts1", "nuts2", "nuts3"], "turnover")
    assert_protected(cells)
    assert len(frame) == len(cells) == quality["table"]["cells"] > 1500
    assert quality["attacker"]["narrowest"] >= 1
    assert quality["adjustment"]["lower_bound"] <= quality["adjustment"]["objective"]
    found = audit(Path(content["release"]))
    assert found.passed, found.failures()
    manifest = json.loads((Path(content["release"]) / "manifest.json").read_text())
    assert not {"sensitive", "original", "contributors", "seed"} & set(str(manifest).split("'"))
    page = Path(content["report"]).read_text()
    assert page.count("<svg") >= 3
    assert "Sensitive cells before and after" in page
    assert adjusted(chosen)["release_id"] == content["release_id"], (
        "the second run returns the release of the first run"
    )


@pytest.mark.reference
def test_linked_tables_of_records_publish_one_value_per_shared_cell(adjusted, tmp_path):
    linked = 'table.tables=[["a21", "size"], ["a21", "nuts1"]]'
    content = adjusted(example("turnover_tables", tmp_path, linked, "table.effort=fast",
                          'table.hierarchies=[["a10", "a21"]]', 'variables.size.role="other"'))  # fmt: skip
    by_size, by_region = tables(content)
    shared = by_size[by_size["size"] == "Total"].merge(
        by_region[by_region["nuts1"] == "Total"], on=["a10", "a21"], suffixes=("", "_again")
    )
    assert len(shared) > 8
    assert (shared["turnover"] == shared["turnover_again"]).all()
    for frame, other in ((by_size, "size"), (by_region, "nuts1")):
        assert_adds_up(frame, ["a10", "a21"], "turnover")
        assert_adds_up(frame, [other], "turnover")
    assert_protected(evidence(content)[1])
    found = audit(Path(content["release"]))
    assert found.passed, found.failures()


@pytest.mark.reference
def test_finished_table_is_protected_with_three_levels_in_one_column(adjusted, tmp_path):
    chosen = example("turnover_cells", tmp_path, "table.effort=fast")
    content = adjusted(chosen)
    (frame,) = tables(content)
    assert list(frame.columns) == ["activity", "size", "tot"]
    cells = evidence(content)[1]
    nothing = (cells["original"] == 0) & cells["contributors"].between(1, 2)
    assert len(cells) == 414
    assert len(frame) == 414 - nothing.sum() == 412, (
        "a firm without turnover is not published as a single contributor"
    )
    assert_adds_up(frame, ["size"], "tot")
    parents = chosen.table.parents["activity"]
    above = frame[frame["activity"] != "Total"].assign(
        up=lambda f: f["activity"].map(parents).fillna("Total")
    )
    sums = above.groupby(["up", "size"])["tot"].agg(lambda each: sum(each, Decimal(0)))
    totals = frame.set_index(["activity", "size"])["tot"]
    assert (totals.loc[sums.index.to_list()].to_numpy() == sums.to_numpy()).all()
    assert_protected(cells)
    assert audit(Path(content["release"])).passed
    falsify(Path(content["release"]))
    found = audit(Path(content["release"]))
    assert [failure.split(":")[0] for failure in found.failures()] == ["description", "additive table"]


@pytest.mark.reference
def test_table_of_tau_argus_is_read_by_its_own_metadata_and_written_back(adjusted, tmp_path):
    for name in ("tauargus/tableinput/pp.tab", "tauargus/tableinput/pp.rda", "tauargus/region2.hrc"):
        shutil.copy(reference_file(name), tmp_path)
    content = {
        "release": {"name": "pp", "k": 3},
        "input": {"path": "pp.tab", "metadata": "pp.rda"},
        "table": {"effort": "fast"},
        "publish": {"path": "lake", "evidence": "evidence"},
    }
    (tmp_path / "release.toml").write_text("".join(
        f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in section.items())
        for name, section in content.items()
    ))  # fmt: skip
    answer = adjusted(read_specification(tmp_path / "release.toml"))
    quality, cells = evidence(answer)
    assert_protected(cells)
    assert len(cells) == 162
    assert quality["table"]["totals_summed_anew"] == 3
    assert quality["table"]["largest_difference"] == 1.0
    (written,) = Path(answer["release"]).rglob("*.tab")
    assert len(written.read_text().splitlines()) == 162


def falsify(release: Path) -> None:
    """Increase one cell by a unit and update the checksum."""
    (path,) = release.rglob("*.parquet")
    content = pq.read_table(path)
    values = content["tot"].to_pylist()
    values[5] += Decimal("0.01")
    changed = content.set_column(2, "tot", pa.array(values, content.schema.field("tot").type))
    pq.write_table(changed, path)
    manifest = json.loads((release / "manifest.json").read_text())
    manifest["files"][path.relative_to(release).as_posix()]["sha256"] = checksum(path)
    (release / "manifest.json").write_text(json.dumps(manifest))


def test_small_counts_are_hidden_and_all_counts_remain_whole_and_non_negative(adjusted, tmp_path):
    chosen = specification(tmp_path, records(), kind="frequency", value=None, dominance=None, decimals=None)
    content = adjusted(chosen)
    (frame,) = tables(content)
    assert frame["frequency"].dtype == np.int64
    assert frame["frequency"].min() >= 0
    quality, cells = evidence(content)
    assert_protected(cells)
    assert quality["table"]["sensitive"] == int(cells["original"].between(1, 2).sum())
    assert not frame["frequency"].isin([1, 2]).any()
    assert quality["metrics"]["posterior"] <= 0.6
    largest = frame.groupby(["a10", "a21"])["frequency"].max()
    assert len(frame) == len(largest) * 4, "the table lists every combination, also those without records"
    assert (largest > 0).all(), "except a code that is 0 in all combinations"
    with pytest.raises(GateRefused, match="differences of two releases"):
        adjusted(specification(tmp_path, records(), release={"seed": 1}, kind="frequency", value=None,
                          dominance=None, decimals=None))  # fmt: skip


def test_counts_rounded_to_a_base_pass_the_gate_and_an_independent_audit(adjusted, tmp_path):
    chosen = specification(tmp_path, records(), kind="frequency", value=None, dominance=None, decimals=None,
                           method="rounding", base=5, effort="standard")  # fmt: skip
    content = adjusted(chosen)
    (frame,) = tables(content)
    assert not (frame["frequency"] % 5).any()
    quality, cells = evidence(content)
    assert (cells["published"] - cells["original"]).abs().max() < 5
    assert quality["metrics"]["posterior"] <= 0.6
    assert quality["metrics"]["attacker_interval"] >= 1
    manifest = json.loads((Path(content["release"]) / "manifest.json").read_text())
    assert manifest["method"] == {"name": "controlled rounding", "base": 5}
    findings = {finding.check: finding for finding in audit(Path(content["release"])).findings}
    assert findings["rounded table"].passed


def test_counts_with_cell_key_noise_are_gated_audited_and_equal_in_every_table(adjusted, tmp_path):
    firms = records(count=1500).assign(person=[f"p{number}" for number in range(1500)])

    def counting(frame, release=None, **table):
        noisy = {"kind": "frequency", "value": None, "dominance": None, "decimals": None, "effort": None}
        limit = {"max_posterior": 0.8}
        unit = {"person": {"role": "unit"}}
        return specification(
            tmp_path, frame, unit, release, **noisy | {"method": "cell_key", "quality": limit} | table
        )

    content = adjusted(counting(firms))
    (frame,) = tables(content)
    quality, cells = evidence(content)
    assert not frame["frequency"].isin([1, 2]).any()
    assert 0 < (cells["published"] - cells["original"]).abs().max() <= 5
    assert quality["metrics"]["linked_posterior"] == quality["noise"]["linked_posterior"] <= 0.8
    assert quality["noise"]["residual"] > 0
    assert "Noise by cell keys" in Path(content["report"]).read_text()
    found = audit(Path(content["release"]))
    assert found.passed, found.failures()
    manifest = json.loads((Path(content["release"]) / "manifest.json").read_text())
    assert manifest["method"] == {"name": "cell keys", "largest": 5, "variance": 2, "least": 3}

    shuffled = firms.sample(frac=1, random_state=3)
    coarser = {"tables": [["a10", "region"]], "hierarchies": None}
    chosen = counting(shuffled, {"name": "coarser", "source": "turnover"}, **coarser)
    elsewhere = chosen.publish.model_copy(update={"path": "coarser"})
    again = adjusted(chosen.model_copy(update={"publish": elsewhere}))
    both = frame[frame["a21"] == "Total"].merge(tables(again)[0], on=["a10", "region"])
    assert len(both) == len(tables(again)[0]) == 12
    assert (both["frequency_x"] == both["frequency_y"]).all()


def finished_cells(folder, firms):
    """Write a finished table of one region; return its specification before it is parsed."""
    cells = pd.DataFrame({"region": ["north", "Total"], "turnover": [310.0, 310.0], "firms": [firms, firms]})
    cells.to_parquet(folder / "cells.parquet")
    variables = {"region": {"role": "other"}}
    variables |= {name: {"role": "other", "kind": "numeric"} for name in ("turnover", "firms")}
    table = {"source": "cells", "value": "turnover", "tables": [["region"]], "contributors": "firms"}
    return {"release": {"name": "turnover", "k": 3}, "input": {"path": "cells.parquet"}, "table": table,
            "variables": variables, "publish": {"path": "lake", "evidence": "evidence"}}  # fmt: skip


def test_finished_table_may_have_fewer_cells_than_k(adjusted, tmp_path):
    content = finished_cells(tmp_path, firms=40)
    (frame,) = tables(adjusted(build_specification(content, tmp_path)))
    assert [float(each) for each in frame["turnover"]] == [310.0, 310.0]


def test_changed_grand_total_is_refused_unless_a_steward_accepts_it_by_name(adjusted, tmp_path):
    content = finished_cells(tmp_path, firms=2)
    with pytest.raises(GateRefused, match="change of the grand total") as caught:
        adjusted(build_specification(content, tmp_path))
    assert '[table.quality] accept = { max_grand_total_change = "REASON, BY WHOM" }' in str(caught.value)
    content["table"]["quality"] = {
        "accept": {"max_grand_total_change": "agreed with the readers, A. Steward"}
    }
    quality, _ = evidence(adjusted(build_specification(content, tmp_path)))
    assert quality["metrics"]["grand_total_change"] > 0.01
    page = (tmp_path / "evidence" / quality["release"]["release_id"] / "report.html").read_text()
    assert "max grand total change: agreed with the readers, A. Steward" in page


@pytest.mark.parametrize(
    ("table", "error", "said"),
    [
        ({"quality": {"min_interval": 1000.0}}, GateRefused, "narrowest interval left to an attacker"),
        ({"quality": {"max_total_adjustment": 0.0}}, GateRefused, "sum of all changes"),
        ({"capacity": 0.0, "fixed_margins": True}, ProtectionFailed, "constraint"),
        ({"total": "north"}, InputRejected, "total mark"),
        ({"hierarchies": [["region", "a21"]], "tables": [["a21"]]}, InputRejected, "is not nested"),
    ],
    ids=["narrow interval", "large changes", "no capacity", "a code is the total mark", "no hierarchy"],
)
def test_refusals_of_tables_contain_no_value(adjusted, tmp_path, table, error, said):
    with pytest.raises(error, match=said) as caught:
        adjusted(specification(tmp_path, records(), **table))
    assert not (tmp_path / "lake").exists()
    assert not {"south", "west", "AB", "CE"} & set(re.findall(r"\w+", str(caught.value)))


def test_records_of_a_table_are_checked_against_the_suite_of_the_agency_in_every_declared_column(
    adjusted, tmp_path
):
    limits = {"column": "hours", "max_value": 40}
    expectation = {"type": "expect_column_values_to_be_between", "kwargs": limits}
    (tmp_path / "suite.json").write_text(json.dumps({"name": "ours", "expectations": [expectation]}))
    frame = records().assign(hours=41)
    chosen = specification(tmp_path, frame, variables={"hours": {"role": "other"}})
    given = chosen.input.model_copy(update={"expectations": "suite.json"})
    with pytest.raises(InputRejected, match="be_between of hours is not met"):
        adjusted(chosen.model_copy(update={"input": given}))
    assert not (tmp_path / "lake").exists()


def test_specification_without_a_table_is_refused(adjusted, tmp_path):
    chosen = specification(tmp_path, records())
    with pytest.raises(SpecificationError, match="no section"):
        adjusted(chosen.model_copy(update={"table": None}))


def test_tau_argus_files_are_read_and_written_without_the_status(adjusted, tmp_path):
    """The table is additive, in the layout of the manual: one cell is unsafe, one total must not change."""
    (tmp_path / "turnover.rda").write_text(
        '<SEPARATOR> ";"\n<SAFE> s\n<UNSAFE> u\n<PROTECT> p\n'
        'Region\n <RECODEABLE>\n <TOTCODE> "T"\n <HIERARCHICAL>\n <HIERCODELIST> "region.hrc"\n'
        'Size\n <RECODEABLE>\n <TOTCODE> "T"\nValue\n <NUMERIC>\nFlag\n <STATUS>\n'
    )
    (tmp_path / "region.hrc").write_text("North\n@N1\n@N2\nSouth\n@S1\n@S2\n")
    sizes = {"N1": (30, 90), "N2": (40, 80), "S1": (70, 60), "S2": (50, 75)}
    rows = {
        (code, size): value
        for code, values in sizes.items()
        for size, value in zip("ab", values, strict=True)
    }
    above = {"N1": "North", "N2": "North", "S1": "South", "S2": "South"}
    cells: dict[tuple[str, str], int] = {}
    for (code, size), value in rows.items():
        for region in (code, above[code], "T"):
            for each in (size, "T"):
                cells[region, each] = cells.get((region, each), 0) + value
    flags = {("N1", "a"): "u", ("T", "T"): "p"}
    lines = [f"{r};{s};{value};{flags.get((r, s), 's')}" for (r, s), value in cells.items()]
    (tmp_path / "turnover.tab").write_text("\n".join(lines) + "\n")
    (tmp_path / "release.toml").write_text(
        '[release]\nname = "turnover"\nk = 3\n[input]\npath = "turnover.tab"\nmetadata = "turnover.rda"\n'
        '[table]\ndecimals = 1\n[publish]\npath = "lake"\nevidence = "evidence"\n'
    )
    content = adjusted(read_specification(tmp_path / "release.toml"))
    _, private = evidence(content)
    sensitive = private[private["sensitive"]]
    assert sensitive[["code_Region", "code_Size"]].to_numpy().tolist() == [["N1", "a"]]
    assert_protected(private)
    fixed = private[(private["code_Region"] == "T") & (private["code_Size"] == "T")].iloc[0]
    assert fixed["published"] == fixed["original"]
    folder = next(Path(content["release"]).glob("tau-argus"))
    text = "".join(path.read_text() for path in folder.iterdir())
    assert "@N1" in text
    assert "STATUS" not in text
    written = [line.split(";") for line in next(folder.glob("*.tab")).read_text().splitlines()]
    published = {(region, size): value for region, size, value in tables(content)[0].itertuples(index=False)}
    assert {(region, size): Decimal(value) for region, size, value in written} == published
    assert audit(Path(content["release"])).passed
