"""Cost matrices are read from files as people write them, and what is none is refused without a value."""

import numpy as np
import pytest
from microguard.pipelines.intake.cost_matrices import MOST_CATEGORIES, cost_matrices
from microguard.schemas.errors import SpecificationError

from tests.pipelines.microdata import specification

ROLES = {"way": {"role": "quasi_identifier", "kind": "nominal", "costs": "ways.csv"}}


def read(folder, text):
    (folder / "ways.csv").write_text(text)
    return cost_matrices(specification(folder, ROLES))["way"]


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_a_square_of_costs_is_read_whatever_stands_in_its_corner(mark, tmp_path):
    lines = ["way,train,walk", "train,0,2.5", "walk,2.5,0", ""]
    matrix = read(tmp_path, "\n".join(lines).replace(",", mark))
    assert matrix.categories == ("train", "walk")
    np.testing.assert_array_equal(matrix.costs, [[0, 2.5], [2.5, 0]])


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "0 categories in its header and 0 lines"),
        (",a,b\na,0,1\n", "2 categories in its header and 1 lines"),
        (",a,b\na,0,1\nb,1\n", "one line a category"),
        (",a,b\nb,0,1\na,1,0\n", "another order"),
        (",a,b\na,0,CANARY\nb,1,0\n", "no number"),
        (",a,b\na,0,1\nb,2,0\n", "symmetric"),
        (",a,b\na,0,inf\nb,inf,0\n", "finite"),
        ("," + ",".join(map(str, range(MOST_CATEGORIES + 1))), "at most 1,000"),
    ],
)
def test_what_is_no_cost_matrix_is_refused_by_its_key(text, named, tmp_path):
    with pytest.raises(SpecificationError, match=named) as refused:
        read(tmp_path, text)
    assert "[variables] way.costs" in str(refused.value)
    assert "CANARY" not in str(refused.value)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(SpecificationError, match="cannot be read"):
        cost_matrices(specification(tmp_path, ROLES))
