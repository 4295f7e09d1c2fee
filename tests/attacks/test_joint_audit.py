"""Attacks on the joint audit: inputs that could make it report an unsafe area as safe or examined."""

import json
from dataclasses import replace
from math import comb

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.audit.joint import attackers, kept, measures, statements
from microguard.pipelines.audit.joint.attackers import ATTACKERS, learnt
from microguard.pipelines.audit.joint.exposure import AreaExposure, _beyond_measures, audit
from microguard.pipelines.audit.joint.limits import FALSE_ALARM, chance_limit
from microguard.pipelines.audit.joint.releases import COUNT
from microguard.pipelines.audit.joint.system import MIXED, STRUCTURE

from tests.pipelines.audit.joint.evidence_files import all_cells, write_records, write_table
from tests.pipelines.audit.joint.planted import LEAKS, firms_of, published, value_list, whole_and_part
from tests.pipelines.audit.joint.test_intervals import system_of

KEY = b"agency"
CONTRIBUTOR = ATTACKERS.index("contributor")


def drawn(found, of, period="2026"):
    """Return an exposure in which `found` of `of` cells have the same factor as in the previous period."""
    rates = {f"turnover in {period}": {"draws": (found, of)}}
    return AreaExposure(shared_draws=found, comparable_draws=of, rates=rates)


@pytest.mark.parametrize("number", [0, 1, 20, 300])
def test_chance_limit_equals_that_of_the_binomial_distribution(number):
    for chance in (0.02, 0.1):
        terms = [comb(number, i) * chance**i * (1 - chance) ** (number - i) for i in range(number + 1)]
        limit = chance_limit(number, chance)
        assert sum(terms[limit + 1 :]) <= FALSE_ALARM
        assert limit == 0 or sum(terms[limit:]) > FALSE_ALARM


@pytest.mark.parametrize("number", [10_000, 50_000, 1_000_000])
def test_chance_limit_of_many_secrets_is_below_their_number(number):
    """The probability of no success in so many trials is below the smallest floating-point number."""
    for chance in (0.02, 0.1):
        assert chance * number < chance_limit(number, chance) < 1.25 * chance * number
    assert not drawn(number, number).safe


def test_shared_factors_of_one_period_are_reported_if_other_periods_share_none():
    month = drawn(50, 50, "2026-12")
    for exposure in (drawn(500, 5000) + month, drawn(0, 5000) + month):
        assert exposure.shared_draws <= chance_limit(exposure.comparable_draws, 0.1)
        assert "passed by turnover in 2026-12" in "".join(exposure.faults())
    assert (drawn(500, 5000) + drawn(6, 50, "2026-12")).safe


def five_tables(folder, *, reused):
    """Publish five tables of 40 separate firms in two periods; one table repeats its factors if `reused`."""
    random = np.random.default_rng(7)
    codes = [f"{i:02d}" for i in range(40)]
    releases = []
    for number in range(5):
        size = np.round(random.lognormal(9, 1, 40))
        for period in ("2025", "2026"):
            if period == "2025" or not (reused and number == 0):
                factor = 1 + random.choice([-1, 1], 40) * random.uniform(0.2, 0.6, 40)
            size = np.round(size * random.uniform(0.95, 1.05, 40)) + 1
            cells = pd.DataFrame({"branch": codes, "original": size, "published": np.round(size * factor),
                                  "contributors": 1, "sensitive": True})  # fmt: skip
            level = 0.2 * cells["original"]
            cells = cells.assign(lower_protection=level, upper_protection=level)
            name = f"t{number} of {period}"
            releases.append(write_table(folder / name, cells, ["branch"], method="adjustment", period=period))
    return releases


def test_table_that_repeats_its_factors_is_reported_among_other_tables(tmp_path):
    found = audit(five_tables(tmp_path / "leak", reused=True))
    assert found.comparable_draws == 200
    assert found.shared_draws >= 40
    assert "turnover in t0 of 2026 after t0 of 2025" in "".join(found.faults())
    assert audit(five_tables(tmp_path / "control", reused=False)).safe


def test_accepted_exposure_does_not_cover_additional_exposure():
    accepted = drawn(60, 60)
    assert not (accepted + drawn(8, 8, "2027")).beyond(accepted).safe
    assert (accepted + drawn(1, 8, "2027")).beyond(accepted).safe
    learning = replace(AreaExposure(), known=dict.fromkeys(ATTACKERS, 40), of=dict.fromkeys(ATTACKERS, 40))
    more = replace(learning, known=learning.known | {"list": 44}, of=learning.of | {"list": 44})
    assert not more.beyond(learning).safe


def test_multisets_that_are_not_enumerated_are_counted_and_raise_no_limit(tmp_path, monkeypatch):
    releases = value_list(tmp_path, 1, True)
    found = audit(releases)
    assert (found.not_listed, found.known["list"]) == (0, 1)
    monkeypatch.setattr(attackers, "MOST_SUMS", 100)
    left = audit(releases)
    assert left.not_listed == found.of["list"] > left.of["list"] == 0
    assert left.verdict == "amber"


def test_classes_of_three_units_are_examined_with_a_list_of_200_values():
    random = np.random.default_rng(0)
    values = np.unique(np.round(1000 * 1.02 ** np.arange(200) + random.uniform(0, 9, 200), 2))
    total = values[[3, 90, 199]].sum()
    one = replace(system_of([[1.0]], [total], [total]), units=np.array([3]), values=values)
    assert learnt(replace(one, row_release=np.array([MIXED]))).known[ATTACKERS.index("list")] == 1
    assert learnt(one).known[ATTACKERS.index("list")] == 0  # a single release discloses the value


@pytest.mark.parametrize(("release", "victims"), [(0, 0), (MIXED, 2)])
def test_sum_of_two_units_is_allowed_only_if_one_release_states_it(release, victims):
    system = replace(system_of([[1, 1, 0]], [9], [9]), row_release=np.array([release]))
    assert learnt(system).known[CONTRIBUTOR] == victims


def revision(folder, *, revised):
    """Suppress a and b of three cells, then a and c; a unit of c may be revised between the tables."""
    firms = pd.DataFrame(
        {
            "unit": range(12),
            "branch": list("aaaabbbbcccc"),
            "region": "north",
            "turnover": 97.0 + np.arange(12),
        }
    )
    releases = []
    for i, hidden in enumerate((["a", "b"], ["a", "c"])):
        if i and revised:
            firms = firms.assign(turnover=firms["turnover"].mask(firms["unit"] == 11, 300.0))
        cells = all_cells(firms, ["branch"], "turnover")
        shown = cells["original"].mask(cells["branch"].isin(hidden))
        cells = published(cells, published=shown, sensitive=cells["branch"] == "a")
        releases.append(write_table(folder / f"v{i}", cells, ["branch"], firms=firms))
    return releases


@pytest.mark.parametrize("revised", [False, True])
def test_revised_total_does_not_hide_a_cell_that_follows_from_the_first_release(revised, tmp_path):
    found = audit(revision(tmp_path, revised=revised))
    assert found.known["outsider"] == 1
    assert found.revised == (2 if revised else 0)


def test_contradictory_statements_about_one_unknown_give_no_value():
    """Both bounds are known, and the lower one exceeds the upper: no release states their middle."""
    one = system_of([[1, 1]], [9], [9])
    columns = {"said": [0, 0], "said_low": [4.0, 6.0], "said_high": [4.0, 6.0], "said_gap": [0.0, 0.0],
               "said_shown": [4.0, 6.0], "said_secret": [False, False], "said_release": [1, 2]}  # fmt: skip
    one = replace(one, **{name: np.array(each) for name, each in columns.items()})
    found = sum_of(one)
    assert found.contradictory == 1


def sum_of(system):
    """Return the disclosures to attackers in all components of a system."""
    from microguard.pipelines.audit.joint.components import components

    return sum((learnt(each.system) for each in components(system)), attackers.Learnt())


def moved(folder, name, cells, columns, hit, change):
    """Publish a sensitive cell with a change, and all other cells unchanged."""
    level = 0.2 * cells["original"]
    shown = cells["original"] + change * hit
    cells = cells.assign(published=shown, sensitive=hit, lower_protection=level, upper_protection=level)
    return write_table(folder / name, cells, columns, method="adjustment")


@pytest.mark.parametrize("kind", ["other codes", "the same value", "other firms"])
def test_two_values_of_one_cell_are_counted_under_other_codes_and_not_across_firms(kind, tmp_path):
    firms = firms_of(3)
    one = all_cells(firms.assign(branch=np.where(firms.index < 2, "x", "y")), ["branch"], "turnover")
    part = firms.drop(index=0) if kind == "other firms" else firms
    other = all_cells(part.assign(size=np.where(part.index < 2, "small", "large")), ["size"], "turnover")
    if kind == "other firms":
        other = other.rename(columns={"size": "branch"}).replace({"small": "x", "large": "y"})
    column = "branch" if kind == "other firms" else "size"
    small, few = one["branch"] == "x", other[column] == ("x" if kind == "other firms" else "small")
    one["members"] = np.where(small, "two firms", "")
    other["members"] = np.where(few, "one firm" if kind == "other firms" else "two firms", "")
    change = 0.3 * float(one.loc[small, "original"].iloc[0])
    again = change if kind == "the same value" else -change
    releases = [
        moved(tmp_path, "one", one, ["branch"], small, change),
        moved(tmp_path, "other", other, [column], few, again),
    ]
    assert audit(releases).repeated_draws == (1 if kind == "other codes" else 0)


@pytest.mark.parametrize("lost", ["units", "largest"])
def test_table_with_incomplete_evidence_is_not_reported_as_examined(lost, tmp_path):
    firms = firms_of(1)
    names = ["branch", "region"]
    cells = published(all_cells(firms, names, "turnover"))
    cells["sensitive"] = (cells["branch"] == "a") & (cells["region"] == "north")
    if lost == "largest":
        cells = cells.drop(columns=["largest_1", "largest_2"])
    releases = [
        write_table(tmp_path / f"t{i}", cells, names, firms=firms if lost == "largest" else None)
        for i in range(2)
    ]
    found = audit(releases)
    assert (found.without_units, found.without_largest) == ((2, 0) if lost == "units" else (0, 2))
    assert found.verdict == "amber"


def test_audit_counts_measures_that_are_too_many_to_compare(tmp_path, monkeypatch):
    releases = LEAKS["related_measures"](tmp_path, 0, True)
    assert audit(releases).not_related == 0
    monkeypatch.setattr(measures, "MOST_COMPARED", 2)
    assert audit(releases).not_related == 1


def test_secrets_without_a_relation_do_not_raise_the_limit_of_the_relation():
    """Cells of another measure bound six cells; 200 other cells have only the first measure."""
    linked, count = 6, 206
    rows = np.hstack([np.eye(linked), np.zeros((linked, count - linked)), -np.eye(linked)])
    secret = np.arange(count + linked) < count
    system = system_of(rows, np.zeros(linked), np.zeros(linked))
    said = {"said": np.arange(count, count + linked), "said_low": np.zeros(linked),
            "said_high": np.full(linked, 91.2), "said_gap": np.zeros(linked),
            "said_shown": np.full(linked, np.nan), "said_secret": np.zeros(linked, bool),
            "said_release": np.ones(linked, int)}  # fmt: skip
    system = replace(
        system, **said, units=np.zeros(len(secret), int), secret=secret, k=np.zeros(len(secret), int),
        row_release=np.full(linked, STRUCTURE), truth=np.full(len(secret), 91.0),
        last=np.where(secret, 100.0, np.nan),
    )  # fmt: skip
    found = _beyond_measures(system, system.with_rows(np.arange(0)), kept.Kept(None, "", b""))
    assert (found.known["growth"], found.of["growth"]) == (linked, linked)
    assert found.known["growth"] > found.limit("growth")


def test_audit_report_has_a_separate_note_on_tables_of_counts(tmp_path):
    counts = []
    for period in range(2):
        cells = published(all_cells(firms_of(1), ["branch"], "turnover"))
        cells = cells.assign(original=cells["contributors"], published=cells["contributors"])
        counts.append(write_table(tmp_path / f"c{period}", cells, ["branch"], measure=COUNT))
    found = audit(counts)
    assert (found.without_units, found.counts_by_codes) == (0, 2)
    assert "frequency tables" in "".join(found.notes())


def test_audit_report_notes_a_release_without_a_period_if_others_have_one(tmp_path):
    one, other = whole_and_part(tmp_path, 3, False)
    assert audit([one, replace(other, period="")]).verdict == "amber"
    assert audit([replace(one, period=""), replace(other, period="")]).without_period == 0


def test_release_of_records_without_units_is_counted_once_for_all_its_variables(tmp_path):
    releases = []
    for name in ("one", "two"):
        folder = tmp_path / name
        each = write_records(folder, firms_of(1)[["region", "turnover"]], "turnover")
        manifest = json.loads((folder / "public" / "manifest.json").read_text())
        records = pd.read_parquet(folder / "public" / "microdata" / "part-0.parquet")
        records.assign(costs=records["turnover"] / 2).to_parquet(
            folder / "public" / "microdata" / "part-0.parquet"
        )
        manifest["columns"].append({**manifest["columns"][1], "name": "costs"})
        manifest["guarantee"]["groups"][0]["variables"].append("costs")
        (folder / "public" / "manifest.json").write_text(json.dumps(manifest))
        releases.append(replace(each, manifest=manifest))
    assert audit(releases).without_units == 2


def test_unsigned_audit_results_are_not_stored(tmp_path):
    releases = whole_and_part(tmp_path, 5, True)
    audit(releases, tmp_path / "kept", b"")
    assert not (tmp_path / "kept").exists()


def test_audit_results_are_not_stored_if_the_code_cannot_be_read(tmp_path, monkeypatch):
    """Code in an archive has no readable files: every version would have the same digest."""
    kept.code.cache_clear()
    monkeypatch.setattr(kept, "__file__", str(tmp_path / "archive.zip" / "a" / "b" / "kept.py"))
    try:
        assert kept.code() == ""
        audit(whole_and_part(tmp_path, 5, True), tmp_path / "kept", KEY)
        assert not (tmp_path / "kept").exists()
    finally:
        kept.code.cache_clear()


def test_audit_results_of_another_version_of_a_library_are_not_used(tmp_path, monkeypatch):
    releases = whole_and_part(tmp_path, 5, True)
    first = audit(releases, tmp_path / "kept", KEY)
    assert audit(releases, tmp_path / "kept", KEY).solved == 0
    kept.code.cache_clear()
    monkeypatch.setattr(kept.scipy, "__version__", "other")
    try:
        assert audit(releases, tmp_path / "kept", KEY).solved == first.solved > 0
    finally:
        kept.code.cache_clear()


def test_manifest_that_names_another_column_counts_as_another_release(tmp_path):
    _, second = whole_and_part(tmp_path, 5, True)
    results = kept.Kept(None, "", b"")
    other = replace(second, manifest={**second.manifest, "value": {"name": "other"}})
    assert statements.name_of(second, results) != statements.name_of(other, results)


def test_file_that_could_not_be_read_is_read_again_by_the_next_audit(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "SETTLED", 0)
    releases = whole_and_part(tmp_path, 5, True)

    def broken(*_):
        raise OSError("the disk does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(statements, "read_cells", broken)
        lost = audit(releases, tmp_path / "kept", KEY)
    assert lost.not_compared == ("whole", "part")
    assert audit(releases, tmp_path / "kept", KEY).not_compared == ()


def test_signed_result_of_another_population_is_not_used(tmp_path, monkeypatch):
    """An attacker with write access copies the signed result of a safe population to an unsafe one."""
    monkeypatch.setattr(kept, "SETTLED", 0)
    safe = [replace(each, group="safe") for each in whole_and_part(tmp_path / "safe", 5, False)]
    leaking = whole_and_part(tmp_path / "leak", 5, True)
    folder = tmp_path / "kept"
    assert audit(safe, folder, KEY).safe
    (signed,) = (each for each in folder.iterdir() if each.is_file())
    assert not audit(leaking, folder, KEY).safe
    (other,) = (each for each in folder.iterdir() if each.is_file() and each != signed)
    other.write_bytes(signed.read_bytes())
    assert json.loads(other.read_text())["signature"]
    assert not audit(leaking, folder, KEY).safe


def test_signed_result_is_not_used_after_its_files_changed(tmp_path, monkeypatch):
    """An attacker with write access restores a result that was signed before a table was published."""
    monkeypatch.setattr(kept, "SETTLED", 0)
    releases, folder = whole_and_part(tmp_path / "safe", 5, False), tmp_path / "kept"
    assert audit(releases, folder, KEY).safe
    (signed,) = (each for each in folder.iterdir() if each.is_file())
    old = signed.read_bytes()
    leaking = whole_and_part(tmp_path / "leak", 5, True)
    for name in ("evidence/cells.parquet", "evidence/contributors/units.parquet/part-0.parquet",
                 "public/table/001.parquet"):  # fmt: skip
        (tmp_path / "safe" / "part" / name).write_bytes((tmp_path / "leak" / "part" / name).read_bytes())
    assert len(leaking) == len(releases)
    signed.write_bytes(old)
    assert not audit(releases, folder, KEY).safe
