"""Tests that the joint audit finds planted leaks of each kind, and nothing in controls without leaks."""

from dataclasses import replace

import pytest
from microguard.pipelines.audit.joint import attackers
from microguard.pipelines.audit.joint.exposure import audit

from tests.pipelines.audit.joint.evidence_files import all_cells, write_classes, write_table
from tests.pipelines.audit.joint.planted import LEAKS, firms_of, published, whole_and_part

#: Attackers that find a leak, if not only the outsider does (docs/attacks.md).
FOUND_BY = {
    "two_values": {"repeated draws"},
    "second_largest": {"second"},
    "contributor": {"contributor", "member"},
    "rounded_twice": {"outsider", "repeated draws"},
    "shared_factor": {"shared draws"},
    "growth_band": {"growth"},
    "value_list": {"list"},
}


@pytest.mark.parametrize("kind", LEAKS)
def test_joint_audit_finds_a_planted_leak_and_nothing_in_its_control(kind, tmp_path):
    for seed in (0, 1):
        leaking = audit(LEAKS[kind](tmp_path / f"leak{seed}", seed, True))
        found = {name for name, count in leaking.known.items() if count > leaking.limit(name)}
        draws = {"repeated draws": leaking.repeated_draws, "shared draws": leaking.shared_draws}
        found |= {name for name, count in draws.items() if count}
        assert found == FOUND_BY.get(kind, {"outsider"}), f"{kind}, seed {seed}"
        assert not leaking.safe
        control = audit(LEAKS[kind](tmp_path / f"control{seed}", seed, False))
        assert control.faults() == (), f"{kind}, seed {seed}"


@pytest.mark.parametrize(("table", "records"), [("2026", ""), ("", "2026")])
def test_joint_audit_compares_records_without_a_period_with_tables_of_every_period(table, records, tmp_path):
    one, other = LEAKS["region_totals_of_records"](tmp_path, 0, True)
    assert not audit([replace(one, period=table), replace(other, period=records)]).safe
    assert audit([replace(one, period="2025"), replace(other, period="2026")]).safe


@pytest.mark.long
@pytest.mark.parametrize("kind", LEAKS)
def test_joint_audit_finds_100_of_100_planted_leaks_and_nothing_in_100_controls(kind, tmp_path):
    found = sum(not audit(LEAKS[kind](tmp_path / f"l{seed}", seed, True)).safe for seed in range(100))
    alarms = sum(not audit(LEAKS[kind](tmp_path / f"c{seed}", seed, False)).safe for seed in range(100))
    assert (found, alarms) == (100, 0)


def unrelated_pair(folder, seed):
    """Publish two tables of different firms under different sources, with equal running numbers, codes and
    columns.
    """
    names = ["branch", "region"]
    releases = []
    for place in range(2):
        firms = firms_of(seed * 2 + place).assign(unit=range(80))
        cells = published(all_cells(firms, names, "turnover"))
        hidden = (cells["branch"].isin(["a", "b"])) & (cells["region"] != "Total")
        cells = cells.assign(published=cells["original"].mask(hidden), sensitive=hidden)
        releases.append(write_table(folder / f"{seed}-{place}", cells, names, firms=firms, group=f"s{place}"))
    return releases


@pytest.mark.parametrize("number", [8, pytest.param(100, marks=pytest.mark.long)])
def test_joint_audit_finds_nothing_in_pairs_of_unrelated_sources(number, tmp_path):
    pairs = [audit(unrelated_pair(tmp_path, seed)) for seed in range(number)]
    assert [pair.faults() for pair in pairs if not pair.safe] == []


def test_control_joint_audit_finds_leaks_if_unrelated_sources_count_as_one(tmp_path):
    """Only the group distinguishes the two populations."""
    releases = [replace(each, group="one") for each in unrelated_pair(tmp_path, 0)]
    assert audit(releases).components > audit(unrelated_pair(tmp_path, 1)).components == 0


def test_joint_audit_does_not_depend_on_the_order_of_releases(tmp_path):
    releases = whole_and_part(tmp_path, 5, True)
    first, second = audit(releases), audit(releases[::-1])
    assert (first.known, first.of, first.components) == (second.known, second.of, second.components)


@pytest.mark.parametrize("programs", [0, 5_000])
def test_joint_audit_counts_secrets_of_components_that_are_too_large_for_programs(
    programs, tmp_path, monkeypatch
):
    monkeypatch.setattr(attackers, "PROGRAMS", programs)
    found = audit(LEAKS["suppressed_elsewhere"](tmp_path, 0, False))
    assert found.safe
    assert (found.sampled > 0) == (programs == 0)
    assert found.verdict == ("green" if programs else "amber")


def test_joint_audit_names_a_release_whose_evidence_is_lost(tmp_path):
    releases = whole_and_part(tmp_path, 5, False)
    (releases[1].evidence / "cells.parquet").unlink()
    assert audit(releases).faults() == ("releases cannot be compared with (part)",)


def test_joint_audit_names_a_release_of_records_whose_map_is_lost_or_damaged(tmp_path):
    fault = ("releases cannot be compared with (damaged)",)
    damaged, other = (write_classes(tmp_path / name, range(6), [0] * 3 + [1] * 3, {"pay": [1.0, 2.0]})
                      for name in ("damaged", "other"))  # fmt: skip
    assert audit([damaged, other]).faults() == ()
    members = damaged.evidence / "members"
    for name in ("members.json", "classes0.parquet", "units.parquet"):
        content = (members / name).read_bytes()
        (members / name).write_bytes(content[:20])
        assert audit([damaged, other]).faults() == fault
        (members / name).unlink()
        assert audit([damaged, other]).faults() == fault
        (members / name).write_bytes(content)
    strange = write_classes(tmp_path / "strange", range(6), [0] * 3 + [2] * 3, {"pay": [1.0, 2.0, 3.0]})
    (members / "units.parquet").write_bytes((strange.evidence / "members" / "units.parquet").read_bytes())
    assert audit([damaged, other]).faults() == fault
    members.rename(tmp_path / "lost")
    assert audit([replace(damaged, series=True), other]).faults() == fault


def test_joint_audit_reveals_no_value_and_no_unit(tmp_path):
    content = audit(whole_and_part(tmp_path, 5, True)).content()
    assert content.pop("verdict") == "red"
    counts = [each for each in content.values() if not isinstance(each, (dict, tuple, list))]
    assert all(isinstance(each, int) for each in counts)


@pytest.mark.parametrize("stated_by", [(True, True), (True, False), (False, True), (False, False)])
def test_joint_audit_counts_the_units_of_a_holding_as_one_contributor(tmp_path, stated_by):
    """The second table leaves out the five units of one holding, whose total is the difference."""
    names, firms = ["branch", "region"], firms_of(3).sort_values("region", ignore_index=True)
    firms = firms.assign(holding=["H" if place < 5 else None for place in range(len(firms))])
    releases = []
    for place, (part, stated) in enumerate(zip((firms, firms[5:]), stated_by, strict=True)):
        cells = published(all_cells(part, names, "turnover")[lambda each: each["branch"] == "Total"])
        units = part if stated else part.drop(columns="holding")
        releases.append(write_table(tmp_path / f"{place}", cells, names, firms=units))
    assert audit(releases).safe == (not stated_by[0])


@pytest.mark.parametrize("left_out", ["unit", "one record", "nothing of a unit"])
def test_joint_audit_counts_all_records_of_a_unit_as_one_contributor(tmp_path, left_out):
    """A unit has three records in cells of two branches; tables by other columns have the others only."""
    firms = firms_of(4).assign(record=range(80))
    firms.loc[:2, "unit"] = firms.loc[0, "unit"]
    firms.loc[:2, "branch"] = ["a", "b", "b"]
    out = {"unit": [0, 1, 2], "one record": [1], "nothing of a unit": [5, 6, 7, 8, 9, 10]}[left_out]
    part = firms.drop(index=out)
    releases = [
        write_table(tmp_path / name, published(all_cells(frame, [name], "turnover")), [name], firms=frame)
        for name, frame in (("branch", firms), ("region", part.assign(region="all")))
    ]
    assert audit(releases).safe == (left_out == "nothing of a unit")


@pytest.mark.parametrize(("old", "left_out"), [("branch", 1), ("region", 1), ("branch", 6), ("region", 6)])
def test_joint_audit_compares_units_with_several_records_with_a_map_of_an_earlier_version(
    tmp_path, old, left_out
):
    """Maps of earlier versions have a row for each unit and cell, and no records."""
    firms = firms_of(4).assign(record=range(80))
    firms["unit"] = firms["unit"].where(firms.index >= 36, firms.index // 3)
    firms["branch"] = firms.groupby("unit")["branch"].transform("first")
    releases = []
    for name, frame in (("branch", firms), ("region", firms[: 80 - left_out].assign(region="all"))):
        units = frame.drop(columns="record").drop_duplicates(["unit", name]) if name == old else frame
        cells = published(all_cells(frame, [name], "turnover"))
        releases.append(write_table(tmp_path / name, cells, [name], firms=units))
    assert audit(releases).safe == (left_out == 6)
