"""Read the stored covering array, and compute it again with `python -m tests.system.pairwise.table`.

The computation checks tens of thousands of specifications and takes two minutes. It is therefore stored, and
a test compares the file with the factors.
"""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path

from microguard.schemas.errors import SpecificationError
from microguard.schemas.specification.read import build_specification

from tests.system.pairwise.covering import Pair, Row, covering
from tests.system.pairwise.jobs import FACTORS, PairwiseJob

ROWS = Path(__file__).with_name("rows.csv")
REFUSED = Path(__file__).with_name("refused.csv")
#: Folder without releases for specifications that are only validated.
NOWHERE = Path(tempfile.gettempdir()) / "pairwise"


def accepts(row: Row) -> bool:
    """Return whether the specification of a row is valid."""
    try:
        build_specification(PairwiseJob(row).content, NOWHERE)
    except SpecificationError:
        return False
    return True


def read_rows() -> list[Row]:
    """Return the rows of the covering array; each is a job with a valid specification."""
    with ROWS.open() as file:
        return list(csv.DictReader(file))


def read_refused() -> list[Pair]:
    """Return the pairs of values that no valid specification has."""
    with REFUSED.open() as file:
        return [((one, value), (other, beside)) for one, value, other, beside in csv.reader(file)]


def main() -> None:
    """Compute the covering array and write it."""
    rows, refused = covering(FACTORS, accepts)
    with ROWS.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(FACTORS), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    with REFUSED.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows((*one, *other) for one, other in refused)


if __name__ == "__main__":
    main()
