"""Tests of amounts with cell-key noise: recomputed, equal in every table, and refused if unsafe."""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.audit.release import audit
from microguard.pipelines.guarantees.noisy_amounts import NoisyAmounts
from microguard.pipelines.guarantees.original_cells import OriginalCells, Published
from microguard.pipelines.intake.unit_key import unit_key
from microguard.pipelines.publication.key import KEY_BYTES
from microguard.pipelines.tables.cell_keys.amounts import attacked, published_amounts
from microguard.pipelines.tables.cell_keys.p_table import SMALL_KEY, read_amount_p_table
from microguard.pipelines.tables.cell_keys.record_keys import SEPARATOR, amount_text
from microguard.pipelines.tables.published_before import StandingValueFails
from microguard.schemas.errors import GateRefused, InputRejected, SpecificationError
from microguard.sdc.cta import CellTable
from microguard.sdc.cta.cell_keys.amounts import AmountNoise, AmountNoiseTable, AmountScaling
from scipy import sparse

from tests.pipelines.published_tables import tables
from tests.pipelines.turnover import records, specification
from tests.reference import reference_file
from tests.sdc.cta.cell_keys import amount_oracle

KEY = "5a" * KEY_BYTES
SCALING = {"p_small": 0.3, "p_large": 0.1, "flexpoint": 1000.0, "epsilon": [1.0, 0.5, 0.2]}
OF_ORACLE = (0.1, 0.3, 1000.0, 3.0, (1.0, 0.5, 0.2))
LARGE, SMALL = "ptab_savings_all.txt", "ptab_savings_smallcells.txt"


def p_table(name):
    return str(reference_file(f"tauargus/cellkey/Magnitude/{name}"))


def noisy(folder, frame, release=None, unit="person", value="turnover", **table):
    """Return the specification of a table of amounts with the p-tables of tau-ARGUS."""
    keys = {"noise_table": p_table(LARGE), "small_noise_table": p_table(SMALL), "noise_scaling": SCALING}
    variables = {unit: {"role": "unit"}, value or "turnover": {"role": "sensitive", "kind": "numeric"}}
    return specification(
        folder,
        frame,
        variables,
        release,
        **{"method": "cell_key", "effort": None, "value": value} | keys | table,
    )


def firms():
    frame = records(count=500).assign(person=[f"p{number}" for number in range(500)])
    frame.loc[:4, ["a10", "a21", "turnover"]] = ["CE", "E", 0.0]  # a cell with small amounts
    frame.loc[5:40, "turnover"] = 0.0
    return frame[~((frame["a21"] == "E") & (frame.index > 8))].reset_index(drop=True)


def keys_of(frame, value="turnover", places=3):
    """Return keys of records by the documented rule, without microguard."""
    keys = np.zeros((len(frame), places), np.int64)
    for place in range(places):
        derived = hmac.new(KEY.encode(), b"keys of amounts" + bytes([place]), hashlib.sha256).digest()
        for row, (unit, amount) in enumerate(zip(frame["person"], frame[value], strict=True)):
            text = f"{unit}\x1f{float(amount)!r}".encode()
            digest = hashlib.blake2b(text, key=derived, digest_size=16).digest()
            keys[row, place] = int.from_bytes(digest[:4], "big") if amount else 0
    return keys


def expected_cells(frame, shown, value="turnover"):
    """Return the published amount of every listed cell by the rule of tau-ARGUS in plain Python."""
    large, small = (amount_oracle.read_rows(p_table(name)) for name in (LARGE, SMALL))
    keys, amounts = keys_of(frame, value), frame[value].round(1)
    for row in shown.to_dict("records"):
        inside = np.ones(len(frame), dtype=bool)
        for name in (name for name in ("a10", "a21", "region") if row.get(name, "Total") != "Total"):
            inside &= (frame[name] == row[name]).to_numpy()
        tops = [*sorted(amounts[inside], reverse=True), 0.0, 0.0, 0.0][:3]
        shares = keys[inside].sum(axis=0) % 2**32 / 2**32
        exact = amount_oracle.perturbed(amounts[inside].sum(), tops, shares, large, small, OF_ORACLE)
        yield row, exact


def test_table_of_amounts_is_recomputed_audited_and_equal_in_every_table(adjusted, tmp_path):
    frame = firms()
    content = adjusted(noisy(tmp_path, frame, dominance={"n": 1, "k": 25.0}, quality={"max_posterior": 1.0}))
    (shown,) = tables(content)
    release, evidence = Path(content["release"]), Path(content["report"]).parent
    differences = [float(row["turnover"]) - exact for row, exact in expected_cells(frame, shown)]
    assert len(differences) > 25
    assert np.abs(differences).max() <= 0.05 + 1e-6, "half of the last digit"
    private = pq.read_table(evidence / "cells.parquet").to_pandas()
    change = (private["published"] - private["original"]).abs().astype(float)
    assert (change[private["original"] > 0] > 0).mean() > 0.5
    assert (change <= private["largest_noise"].astype(float)).all()
    quality = json.loads((evidence / "quality.json").read_text())
    assert 0 < quality["metrics"]["within_level"] <= 1
    assert quality["amount_noise"]["examined"] > 0
    assert "Noise of amounts by cell keys" in Path(content["report"]).read_text()
    found = audit(release)
    assert found.passed, found.failures()
    manifest = json.loads((release / "manifest.json").read_text())
    assert manifest["method"]["name"] == "cell keys of amounts"
    assert NoisyAmounts.from_manifest(manifest).statement == manifest["guarantee"]

    other = frame.rename(columns={"turnover": "sales"}).sample(frac=1, random_state=2)
    renamed = {"name": "coarser", "source": "other"}
    chosen = noisy(tmp_path, other.assign(turnover=0.0), renamed, value="sales",
                   tables=[["a10", "region"]], hierarchies=None, quality={"max_posterior": 1.0})  # fmt: skip
    # The second table has a separate ledger, so that only the keys make the values equal.
    (again,) = tables(adjusted(elsewhere(chosen)))
    both = shown[shown["a21"] == "Total"].merge(again, on=["a10", "region"])
    assert len(both) == len(again) == 12
    assert (both["turnover"] == both["sales"]).all()

    strict = noisy(tmp_path, frame, {"name": "strict"}, dominance={"n": 1, "k": 25.0},
                   quality={"max_posterior": 0.05})  # fmt: skip
    with pytest.raises(GateRefused, match="within its level"):
        adjusted(elsewhere(strict))
    negative = noisy(tmp_path, frame.assign(turnover=-frame["turnover"] - 1), {"name": "minus"})
    with pytest.raises(InputRejected, match="negative amount"):
        adjusted(elsewhere(negative))


def test_sum_published_next_to_its_terms_is_counted_as_a_second_look(adjusted, tmp_path):
    frame = firms()
    frame.loc[frame.index[-1], ["region", "turnover"]] = ["island", 800.0]  # this cell has one contributor
    share = np.random.default_rng(3).random(len(frame))
    frame["domestic"] = (frame["turnover"] * share).round(1)
    frame["turnover"] = frame["turnover"].round(1)
    frame["foreign"] = (frame["turnover"] - frame["domestic"]).round(1)
    keys = {"tables": [["region"]], "hierarchies": None, "p_percent": 10, "quality": {"max_posterior": 1.0}}

    def noise_of(chosen):
        report = Path(adjusted(chosen)["report"])
        return json.loads((report.parent / "quality.json").read_text())["amount_noise"]

    def published(value, **further):
        chosen = noisy(tmp_path, frame, {"name": value, "source": "firms"}, value=value, **keys | further)
        return noise_of(
            chosen.model_copy(update={"publish": chosen.publish.model_copy(update={"path": value})})
        )

    assert [published(value)["related"] for value in ("domestic", "foreign")] == [[], []]
    alone = noise_of(elsewhere(noisy(tmp_path, frame, {"name": "alone"}, **keys)))["linked_within_level"]
    with pytest.raises(GateRefused, match="within its level"):
        published("turnover", quality={"max_posterior": alone + 0.01})
    together = published("turnover")
    assert together["related"] == [["domestic", "foreign"]]
    assert together["linked_within_level"] > alone + 0.05
    assert together["earlier"] > 0


def elsewhere(chosen):
    """Return the same specification with separate areas."""
    name = chosen.release.name
    places = {"path": name, "evidence": f"evidence-{name}"}
    return chosen.model_copy(update={"publish": chosen.publish.model_copy(update=places)})


def test_known_variable_of_a_unit_discloses_nothing_about_the_other_variable():
    """Attack on draws that two variables share; the control uses keys by unit alone, as counts do.

    The cells have one contributor. The reader knows the wages exactly and computes the draw from their
    published amount. The reader then uses this draw for the turnover.
    """
    table = AmountNoiseTable.from_transitions(
        [0, *[1] * 9, *[5] * 21],
        [0, *np.linspace(0, 2, 9), *np.linspace(1, 9, 21)],
        [1, *[1 / 9] * 9, *[1 / 21] * 21],
    )
    noise = AmountNoise(AmountScaling(0.2, 0.2, 1e6), table)
    rng, derived = np.random.default_rng(1), bytes(32)
    turnover, wages = rng.lognormal(6, 1, 400).round(), rng.lognormal(4, 1, 400).round()

    def published(amounts, text):
        keys = [int.from_bytes(unit_key(text(u, a), derived)[:4], "big") for u, a in enumerate(amounts)]
        return noise.perturb(amounts, amounts[:, None], np.array(keys, np.uint64)[:, None]).values

    def success(text):
        draw = (published(wages, text) - wages) / wages
        guess = published(turnover, text) / (1 + draw)
        return np.mean(np.abs(guess - turnover) <= 0.01 * turnover)

    chance = np.mean(np.abs(published(turnover, lambda u, a: f"x{u}") - turnover) <= 0.01 * turnover)
    assert success(lambda unit, amount: str(unit)) > 0.99, "the attack on the control must succeed"
    assert success(lambda unit, amount: amount_text(f"{unit}{SEPARATOR}{amount}")) < chance + 0.05 < 0.25


def test_amount_published_before_with_other_noise_is_refused():
    """Two noise scales with one draw would disclose the draw and the amount."""
    table = AmountNoiseTable.from_transitions([0, 1, 1], [0, 0, 2], [1, 0.5, 0.5])
    units = np.array([500.0, 300.0])
    cells = SimpleNamespace(units=units, gross=units, largest=units[:, None])
    keys, variables = np.array([[0], [1 << 31]], np.uint64), np.arange(2)

    def shown(small, held):
        noise = AmountNoise(AmountScaling(small, small, 1e6), table)
        return published_amounts(cells, keys, noise, 1, variables, np.array(held)).values

    first = shown(0.2, [np.nan, np.nan])
    assert first.tolist() == [400, 360]
    assert shown(0.2, first).tolist() == [400, 360]
    with pytest.raises(StandingValueFails, match=r"2 cell\(s\) were published before with other values"):
        shown(0.3, first)


@pytest.mark.parametrize(("unit", "undone"), [(1.0, True), (1000.0, False)])
def test_trying_all_draws_recovers_amounts_of_many_digits_and_no_amounts_in_thousands(unit, undone):
    noise = AmountNoise(AmountScaling(0.3, 0.1, 1000.0 / unit), read_amount_p_table(p_table(LARGE), "p"))
    sensitive, room = np.array([True, False, False]), np.full(3, np.inf)
    lines, order = sparse.csr_matrix([[1.0, 1.0, -1.0]]), np.arange(3)
    probabilities = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        parts = np.rint(rng.lognormal(12, 0.5, 2) / unit)
        units, largest = np.append(parts, parts.sum()), np.append(parts, parts.max())[:, None]
        cells = SimpleNamespace(units=units, gross=units, largest=largest)
        keys = rng.integers(0, 1 << 32, (3, 1)).astype(np.uint64)
        shown = published_amounts(cells, keys, noise, 0, order, np.full(3, np.nan))
        level = np.where(sensitive, 0.005 * units, 0.0)
        rules = CellTable(units, lines, sensitive, level, level, room, room)
        chosen, alone, linked = attacked(shown, rules, order, np.array([3, 3, 6]), seed=1)
        assert chosen.tolist() == [0]
        assert alone[0] < 0.3
        probabilities.append(linked[0])
    assert bool(np.mean(probabilities) > 0.9) == undone
    assert bool(np.mean(probabilities) < 0.5) != undone


@pytest.mark.parametrize("amount", ["100", "100.0", "1.0E2", "1e2"])
def test_amount_has_one_key_in_every_spelling(amount):
    assert amount_text(f"u{SEPARATOR}7{SEPARATOR}{amount}") == f"u{SEPARATOR}7{SEPARATOR}100.0"


def test_noise_of_amounts_is_counted_from_the_original_cells():
    guarantee = NoisyAmounts(5.0, 8.0, 0.3, 0.03, 1000.0, 3.0, (1.0, 0.5), 4.2)
    units = np.array([10.0, 0.0, 7.0, 5.0])
    nothing, bound = np.zeros(4), np.array([3.0, 0.0, 3.0, 3.0])
    original = OriginalCells(
        pd.DataFrame({"a": list("abcd")}), units, nothing, nothing, nothing > 0, bound, bound
    )

    def counted(shown, missing=(False,) * 4):
        change = np.where(missing, 0, np.array(shown) - units)
        return guarantee.compare(Published(change, np.array(shown), np.array(missing), 0), original)

    assert counted([8.0, 0.0, 10.0, 2.0]) == (0, 0)
    assert counted([14.0, 0.0, 7.0, 5.0]) == (0, 1)
    assert counted([10.0, 1.0, 7.0, -1.0]) == (2, 2)
    assert counted([10.0, 0.0, np.nan, 5.0], (False, False, True, False)) == (0, 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"noise_table": None}, "a file with a p-table"),
        ({"noise_scaling": None}, "depends on the largest contributions"),
        ({"noise_scaling": SCALING | {"p_large": 0.4}}, r"p_large.*0\.3 \(p_small\) or less"),
        ({"noise_scaling": SCALING | {"epsilon": [0.5, 1.0]}}, "1 first"),
        ({"noise_scaling": SCALING | {"epsilon": [1.0] * 5}}, "epsilon"),
        ({"noise_scaling": SCALING | {"mu_c": 2.0}}, "mu_c"),
        ({"noise_scaling": SCALING | {"q": 1.0}}, "q"),
        ({"largest_noise": 5}, "noise_table defines the same"),
        ({"weighted": True}, "a key belongs to a record"),
        ({"tau_argus": True}, "totals are not additive"),
        ({"relax": ["capacities"]}, "with cell-key noise of amounts"),
        ({"a_priori": "known.csv"}, "with cell-key noise of amounts"),
        ({"holding": "region"}, "with cell-key noise of amounts"),
        ({"preserve": {"mean": 0.1}}, "with cell-key noise of amounts"),
        (
            {"kind": "frequency", "value": None, "dominance": None, "decimals": None},
            "whose noise has no scale",
        ),
    ],
)
def test_refusal_names_the_key_that_noise_of_amounts_does_not_support(tmp_path, changes, message):
    with pytest.raises(SpecificationError, match=message):
        noisy(tmp_path, firms().assign(weight=1.0), **changes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "i;j;p;v;p_int_ub;type\n0;0;1;0;1;all\n1;0;0.5;-1;0.5;even\n1;2;0.5;1;1;even\n",
            "such as even and odd",
        ),
        ("i;j;p\n0;0;1\n1;0;0.5\n1;3;0.5\n", "expected noise of mean 0"),
        ("i;j\n0;0\n", "none of p"),
    ],
)
def test_refusal_of_an_unusable_p_table_of_amounts_names_its_key(tmp_path, text, message):
    (tmp_path / "p.txt").write_text(text)
    with pytest.raises(SpecificationError, match=message) as caught:
        read_amount_p_table(str(tmp_path / "p.txt"), SMALL_KEY)
    assert "small_noise_table" in str(caught.value)
