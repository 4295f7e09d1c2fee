"""Tests of cost matrices: common file formats, and refusals that show none of the values."""

import numpy as np
import pytest
from microguard.pipelines.intake.cost_matrices import MOST_CATEGORIES, cost_matrices
from microguard.schemas.errors import SpecificationError

from tests.pipelines.microdata import specification

ROLES = {"transport": {"role": "quasi_identifier", "kind": "nominal", "costs": "costs.csv"}}


def read(folder, text):
    (folder / "costs.csv").write_text(text)
    return cost_matrices(specification(folder, ROLES))["transport"]


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_cost_matrices_ignores_the_first_name_of_the_header(mark, tmp_path):
    lines = ["transport,train,walk", "train,0,2.5", "walk,2.5,0", ""]
    matrix = read(tmp_path, "\n".join(lines).replace(",", mark))
    assert matrix.categories == ("train", "walk")
    np.testing.assert_array_equal(matrix.costs, [[0, 2.5], [2.5, 0]])


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "found 0 categories and 0 lines"),
        (",a,b\na,0,1\n", "found 2 categories and 1 lines"),
        (",a,b\na,0,1\nb,1\n", "one line of costs for each category"),
        (",a,b\nb,0,1\na,1,0\n", "another order"),
        (",a,b\na,0,CANARY\nb,1,0\n", "expected numbers as costs"),
        (",a,b\na,0,1\nb,2,0\n", "symmetric"),
        (",a,b\na,0,inf\nb,inf,0\n", "finite"),
        ("," + ",".join(map(str, range(MOST_CATEGORIES + 1))), "at most 1,000"),
    ],
)
def test_refusal_of_a_malformed_cost_file_names_the_key_of_the_specification(text, named, tmp_path):
    with pytest.raises(SpecificationError, match=named) as refused:
        read(tmp_path, text)
    assert "[variables] transport.costs" in str(refused.value)
    assert "CANARY" not in str(refused.value)


def test_cost_matrices_refuses_a_missing_file(tmp_path):
    with pytest.raises(SpecificationError, match="cannot be read"):
        cost_matrices(specification(tmp_path, ROLES))
