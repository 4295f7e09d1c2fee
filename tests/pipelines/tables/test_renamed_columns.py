"""Attack on cells whose column has another name in a later table: one table suppresses a cell, the other
publishes its value.

The columns of the file are renamed, the source has another name, and one record is new. The counts have no
contributors, so that only true values show that the cells are the same. The attacker subtracts nothing: a
suppressed cell is read in the table with rounded values.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.tables.published_before import new_cells
from microguard.pipelines.tables.renamed_columns import refuse_renamed_columns
from microguard.schemas.errors import GateRefused

from tests.attacks.office import cells_of
from tests.attacks.office import specification as described
from tests.pipelines.turnover import records, specification

ORIGIN = {"source": "survey", "period": "", "release_id": "r1"}
OTHER_NAMES = {"a21": "branch", "region": "area"}
COUNTS = {"kind": "frequency", "value": None, "decimals": None, "dominance": None, "hierarchies": None}
METHODS = {
    "suppression": {"method": "suppression", "effort": "fast", "minimum_frequency": 4},
    "rounding": {"method": "rounding", "base": 5, "effort": None},
    "adjustment": {"minimum_frequency": 4},
}


def of_census(folder, frame, name, method, **table):
    columns = {each: {"role": "other"} for each in ("branch", "area") if each in frame}
    chosen = specification(
        folder, frame, columns, {"name": name}, **(COUNTS | {"tables": [list(frame.columns)]} | table),
        **METHODS[method],
    )  # fmt: skip
    variables = {each: role for each, role in chosen.variables.items() if each in frame}
    publish = chosen.publish.model_copy(update={"path": name})
    return chosen.model_copy(update={"variables": variables, "publish": publish})


@pytest.mark.spark
@pytest.mark.parametrize(
    ("first", "second"),
    [("suppression", "rounding"), ("rounding", "suppression"), ("suppression", "adjustment")],
)
def test_suppressed_cell_is_not_published_under_another_column_name(adjusted, tmp_path, first, second):
    census = records()[["a21", "region"]]
    adjusted(of_census(tmp_path, census, "census", first))
    one_more = pd.concat([census, census[census["a21"] == "A"].head(1)]).rename(columns=OTHER_NAMES)
    with pytest.raises(
        GateRefused, match="the codes of area as those of region, the codes of branch as those of a21"
    ):
        adjusted(of_census(tmp_path, one_more, "survey", second))


def counts_of(frame, dimensions, *, units=False, **table):
    """Return the cells of the records that an office counts, and its table."""
    chosen = described(frame, {"kind": "frequency", "tables": [dimensions], **table}, units=units)
    assert chosen.table is not None
    return cells_of(frame, chosen).keyed(bytes(range(32))), chosen.table


def population(count=400):
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "branch": random.choice(list("abcde"), count, p=[0.4, 0.3, 0.2, 0.09, 0.01]),
            "sex": random.choice(["1", "2"], count, p=[0.55, 0.45]),
            "region": random.choice(list("nsw"), count),
            "citizen": random.choice(["1", "2"], count, p=[0.9, 0.1]),
            "hours": random.choice([20.0, 30.0, 40.0], count),
            "firm": np.arange(count).astype(str),
        }
    )


def refusal(frame, dimensions, later, later_dimensions, **table):
    """Return the refusal of a later table of other records or names, after a first table; None if there is
    none.
    """
    first, its_table = counts_of(frame, dimensions, **table)
    before = new_cells(first, its_table, first.units, None, ORIGIN)
    cells, chosen = counts_of(later, later_dimensions, **table)
    try:
        refuse_renamed_columns(cells, chosen, before)
    except GateRefused as error:
        return str(error)
    return None


@pytest.mark.parametrize("dimensions", [["branch"], ["sex"], ["sex", "region"], ["branch", "region"]])
def test_column_under_another_name_is_refused(dimensions):
    frame = population()
    found = refusal(frame, dimensions, frame.rename(columns={dimensions[0]: "x"}), ["x", *dimensions[1:]])
    assert found is not None
    assert f"Rename x to {dimensions[0]} in the input" in found
    assert "use the codes" not in found


@pytest.mark.parametrize("dimensions", [["branch"], ["sex", "region"], ["branch", "region"]])
def test_column_under_another_name_is_refused_after_a_few_records_changed(dimensions):
    frame = population()
    later = pd.concat([frame, frame.head(1)])
    everything = {name: f"new_{name}" for name in dimensions}
    found = refusal(frame, dimensions, later.rename(columns=everything), list(everything.values()))
    assert found is not None


def test_columns_whose_names_are_exchanged_are_refused():
    frame = population()
    exchanged = frame.rename(columns={"sex": "citizen", "citizen": "sex"})
    found = refusal(frame, ["sex", "citizen"], exchanged, ["sex", "citizen"])
    assert "Rename sex to citizen" in str(found)


@pytest.mark.parametrize("name", ["branch", "x"])
def test_codes_under_other_names_are_refused(name):
    frame = population()
    later = frame.assign(**{name: frame["branch"].map(dict(zip("abcde", "54321", strict=True)))})
    found = refusal(frame, ["branch"], later, [name])
    assert "se the codes of that table" in str(found)
    assert ("ename x" in str(found)) == (name == "x")


def test_amounts_in_another_unit_under_another_column_name_are_refused():
    frame = population().rename(columns={"hours": "turnover"}).drop(columns="firm")
    first, its_table = counts_of(frame, ["branch"], kind="magnitude", value="turnover", decimals=0)
    before = new_cells(first, its_table, first.units, None, ORIGIN)
    later = frame.assign(production=60 * frame["turnover"]).rename(columns={"branch": "x"})
    cells, chosen = counts_of(later, ["x"], kind="magnitude", value="production", decimals=0)
    with pytest.raises(GateRefused, match="Rename x to branch"):
        refuse_renamed_columns(cells, chosen, before)


@pytest.mark.parametrize(
    ("dimensions", "later"),
    [
        (["branch"], ["branch"]),
        (["sex"], ["citizen"]),  # the same codes, other records
        (["sex", "region"], ["citizen", "region"]),
        (["branch", "region"], ["region"]),
        (["branch"], ["region", "sex"]),
    ],
)
def test_other_columns_of_the_same_records_are_not_refused(dimensions, later):
    frame = population()
    assert refusal(frame, dimensions, frame, later) is None


def test_columns_of_other_records_with_the_same_codes_are_not_refused():
    """Counts of at most nine records in two codes are often equal by chance."""
    random = np.random.default_rng(1)
    refused = 0
    for _ in range(200):
        one, other = (pd.DataFrame({"a": random.choice(["1", "2"], 40, p=[0.8, 0.2])}) for _ in range(2))
        other = pd.concat([other, other.head(1 + random.integers(5))])
        refused += refusal(one, ["a"], other.rename(columns={"a": "b"}), ["b"]) is not None
    assert refused == 0


def test_column_under_another_name_keeps_its_values_if_units_are_known():
    frame = population()
    assert refusal(frame, ["branch"], frame.rename(columns={"branch": "x"}), ["x"], units=True) is None


def two_questions(count=400, yes=220):
    """Return records with two questions whose answers have equal totals by chance."""
    random = np.random.default_rng(2)
    answers = np.repeat(["1", "2"], [yes, count - yes])
    return pd.DataFrame(
        {
            "works": answers,
            "studies": random.permutation(answers),
            "region": random.choice(list("nsw"), count),
            "firm": np.arange(count).astype(str),
        }
    )


@pytest.mark.parametrize(
    ("further", "units", "refused"),
    [([], False, True), ([], True, False), (["region"], False, False), (["region"], True, False)],
)
def test_other_columns_with_equal_totals_are_told_apart_by_units_or_a_third_column(further, units, refused):
    frame = two_questions()
    found = refusal(frame, ["works", *further], frame, ["studies", *further], units=units)
    assert (found is not None) == refused
    assert found is None or "because the columns are different and their totals are equal by chance" in found


def test_balanced_groups_with_other_codes_are_not_refused():
    frame = pd.DataFrame({"wave": np.repeat(list("1234"), 100), "group": np.tile(list("abcd"), 100)})
    assert refusal(frame, ["wave"], frame, ["group"]) is None


def test_codes_under_other_names_are_refused_if_many_totals_are_equally_large():
    frame = pd.DataFrame({"age": np.repeat(np.arange(90), 50 + np.arange(90) % 3)})
    frame = frame.assign(born=2000 - frame["age"]).astype(str)
    frame["firm"] = frame.index.astype(str)
    assert "Rename born to age" in str(refusal(frame, ["age"], frame, ["born"]))
    assert refusal(frame, ["age"], frame, ["born"], units=True) is None


@pytest.mark.parametrize("names", [("branch", "section"), ("section", "branch")])
def test_column_whose_codes_are_sums_of_some_other_codes_is_refused_with_the_table_of_both(names):
    random = np.random.default_rng(3)
    branches = random.choice(list("abcdefg"), 3000, p=np.arange(1, 8) / 28)
    sections = dict(zip("abcdefg", ["a", "b", "c", "d", "eg", "eg", "eg"], strict=True))
    frame = pd.DataFrame({"branch": branches, "section": [sections[each] for each in branches]})
    found = refusal(frame, [names[0]], frame, [names[1]])
    assert 'publish both in one table (table.hierarchies = [["section", "branch"]])' in str(found)
    first, its_table = counts_of(frame, [names[0]])
    before = new_cells(first, its_table, first.units, None, ORIGIN)
    cells, table = counts_of(frame, ["branch"], hierarchies=[["section", "branch"]])
    refuse_renamed_columns(cells, table, before)
