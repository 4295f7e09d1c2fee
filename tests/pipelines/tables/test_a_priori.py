"""Tests of a priori files: the agency's status of a cell takes precedence over the rules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from microguard.pipelines.publication.identity import identity
from microguard.pipelines.tables.a_priori import a_priori_information, read_a_priori
from microguard.pipelines.tables.problem import table_problem
from microguard.schemas.errors import InputRejected, SpecificationError

from tests.pipelines.tables.regions import KEY, regional, regional_cells
from tests.schemas.specification.test_table import build


def test_a_priori_file_sets_cells_safe_sensitive_or_fixed(tmp_path: Path) -> None:
    text = "region,status,upper_protection,lower_protection,upper_capacity,cost\n"
    text += "n,safe,,,,7\ns,sensitive,4,3,,\n,fixed,,,,\nw,,,,5,\n"
    specification = regional(tmp_path, text)
    cells = regional_cells(specification)
    rule = table_problem(cells, specification, KEY).by_rule
    place = {code: row for row, code in enumerate(cells.codes["region"])}
    assert np.flatnonzero(rule.sensitive).tolist() == [place["s"]]
    assert (rule.lower_protection[place["s"]], rule.upper_protection[place["s"]]) == (30, 40)
    assert rule.upper_capacity[place["Total"]] == rule.lower_capacity[place["Total"]] == 0
    assert rule.upper_capacity[place["w"]] == 50
    assert rule.costs[place["n"]] == 7


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("region,status\nx,safe\n", "expected codes of a cell"),
        ("region,status\nn,odd\n", "unknown status"),
        ("region,status\nn,safe\nn,fixed\n", "repeated"),
        ("region,status,cost\nn,safe,-1\n", "expected a number of at least 0"),
        ("region\nn\n", "expected a column"),
    ],
)
def test_rejection_of_a_faulty_a_priori_file_names_rows_and_no_values(
    tmp_path: Path, text: str, message: str
) -> None:
    specification = regional(tmp_path, text)
    assert specification.table is not None
    with pytest.raises(InputRejected, match=message):
        read_a_priori(str(tmp_path / "known.csv"), regional_cells(specification), specification.table)


def test_release_id_depends_on_the_a_priori_file(tmp_path: Path) -> None:
    def made_from(text: str) -> object:
        screened = SimpleNamespace(fingerprint="of the input")
        return identity(screened, regional(tmp_path, text), "table")  # type: ignore[arg-type]

    before = made_from("region,status\nn,safe\n")
    assert before == made_from("region,status\nn,safe\n")
    assert before != made_from("region,status\nn,sensitive\n")


def test_tau_argus_a_priori_file_sets_the_same_statuses(tmp_path: Path) -> None:
    specification = regional(tmp_path, "region,status\n")
    cells = regional_cells(specification)
    assert specification.table is not None
    (tmp_path / "known.hst").write_text("n;s\nn;c;7\ns;pl;3;4\nTotal;p\n")
    text = "region,status,lower_protection,upper_protection,cost\nn,safe,,,7\ns,sensitive,3,4,\n,fixed,,,\n"
    (tmp_path / "same.csv").write_text(text)
    one, other = (read_a_priori(str(tmp_path / name), cells, specification.table)
                  for name in ("known.hst", "same.csv"))  # fmt: skip
    assert one.status.tolist() == other.status.tolist()
    for name in one.numbers:
        np.testing.assert_array_equal(one.numbers[name], other.numbers[name])


def test_status_of_a_finished_table_applies_to_cells_that_the_a_priori_file_omits(tmp_path: Path) -> None:
    specification = regional(tmp_path, "region,status,cost\nn,safe,\nw,,5\n")
    cells = regional_cells(specification)
    places = {code: row for row, code in enumerate(cells.codes["region"])}
    status = np.full(4, "", dtype=object)
    status[[places["n"], places["w"]]] = "sensitive", "fixed"
    a_priori = a_priori_information(replace(cells, input_columns={"status": status}), specification)
    assert a_priori is not None
    assert [a_priori.status[places[code]] for code in ("n", "s", "w")] == ["safe", "", "fixed"]
    assert a_priori.numbers["cost"][places["w"]] == 5


def test_a_priori_file_is_refused_for_counts() -> None:
    with pytest.raises(SpecificationError, match="drawn"):
        build({"kind": "frequency", "tables": [["region"]], "a_priori": "known.csv"})
