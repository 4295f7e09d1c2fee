"""Tests that no original value leaks: canary values are searched in all files and outputs of a run.

Files are decoded before the search: Parquet columns, dictionaries and metadata.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from tests.system.command import specification

VARIABLES = """
person = { role = "unit" }
name = { role = "identifier" }
household = { role = "household" }
region = { role = "region" }
sex = { role = "quasi_identifier", kind = "nominal" }
income = { role = "quasi_identifier", kind = "numeric" }
wealth = { role = "quasi_identifier", kind = "numeric" }
diagnosis = { role = "sensitive", kind = "nominal" }
note = { role = "other" }
"""
N = 300


def persons() -> pd.DataFrame:
    """Return records in which every confidential value is a unique canary with a unique format."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "person": [f"CANARYUNIT{i:05d}" for i in range(N)],
            "name": [f"CANARYNAME{i:05d}é" for i in range(N)],
            "household": np.arange(N) // 2 + 771_000_123,  # no multiple of the rounding step of means
            "region": pd.Categorical(
                np.where(np.arange(N) % 2, "north", "south"), categories=["north", "south", "CANARYEMPTY"]
            ),
            "sex": np.where(rng.random(N) < 0.5, "f", "m"),
            "income": 770_000_000 + rng.choice(10_000_000, N, replace=False),
            # values have full precision, so that no mean equals a value by chance
            "wealth": rng.normal(size=N),
            "diagnosis": np.where(rng.random(N) < 0.2, "ill", "well"),
            "note": [f"{i:05d}" for i in range(N)],
        }
    )
    frame["income"] = frame["income"].astype("Int64")
    frame.loc[0, ["income", "diagnosis", "note"]] = [pd.NA, "CANARYREJECTED", "CANARYREJECTED"]
    return frame


def secrets(frame: pd.DataFrame) -> set[str]:
    canaries = {"CANARY", *frame["household"].astype(str).head(40)}
    canaries |= {str(value) for value in frame["income"].dropna()}
    return canaries | {repr(float(value)) for value in frame["wealth"]}


def texts(folder: Path):
    """Yield the texts in every file, and the names of the files."""
    for path in sorted(folder.rglob("*")):
        yield path, str(path.relative_to(folder))
        if path.suffix == ".parquet":
            metadata = pq.read_metadata(path)
            yield path, str(metadata.metadata)
            for group in range(metadata.num_row_groups):
                for column in range(metadata.num_columns):
                    yield path, str(metadata.row_group(group).column(column).statistics)
            for column in pq.read_table(path).columns:
                yield path, " ".join(map(str, column.to_pylist()))
                for chunk in column.chunks:
                    yield path, str(getattr(chunk, "dictionary", ""))
        elif path.is_file() and path.name != "key":
            yield path, path.read_bytes().decode("utf-8", errors="replace")


def leaks(text: str, canaries: set[str]) -> bool:
    """Return whether a text contains a canary that is not part of a longer number, such as a keyed hash."""
    return any(re.search(rf"(?<!\d){re.escape(each)}(?!\d)", text) for each in canaries if each in text)


#: Additions to the specification, with the resulting exit code.
ENDINGS = {
    "published": ("[missing]\nmax_rejected = 1", 0),
    "refused by the gate": ("[missing]\nmax_rejected = 1\n[quality]\nmax_information_loss = 0.000001", 4),
    "input rejected": ("", 3),
}


def written(ending: str, folder: Path) -> Path:
    """Write the records and the specification of a run with this ending."""
    return specification(folder, persons(), VARIABLES, ENDINGS[ending][0])


@pytest.mark.spark
@pytest.mark.parametrize("ending", ENDINGS)
def test_files_and_outputs_of_a_run_contain_no_value_of_a_record(plain_runs, ending):
    canaries, code = secrets(persons()), ENDINGS[ending][1]
    folder, ran = plain_runs[ending]
    _, first = plain_runs["numeric"]  # Java writes to the streams of the first run
    assert ran.code == code, ran.err
    assert "Traceback" not in ran.err
    assert not leaks(ran.out + ran.err + first.out + first.err, canaries)
    for area in ("lake", "evidence"):
        for path, text in texts(folder / area):
            assert not leaks(text, canaries), path
    assert (folder / "lake" / "current.json").exists() == (code == 0)
    assert code == 0 or not (folder / "lake").exists() or not list((folder / "lake").iterdir())


@pytest.mark.spark
def test_release_reveals_neither_input_order_nor_unused_categories(plain_runs):
    """Column `note` numbers the records, and the region CANARYEMPTY has no records."""
    _, ran = plain_runs["published"]
    release = Path(json.loads(ran.out.strip().splitlines()[-1])["release"])
    published = pd.read_parquet(release / "microdata")
    assert published["region"].dtype == "category"
    assert set(published["region"].cat.categories) == {"north", "south"}
    order = published["note"].astype(int).to_numpy()
    assert len(order) == N - 1
    assert abs(np.corrcoef(order, np.arange(len(order)))[0, 1]) < 0.2
    manifest = json.loads((release / "manifest.json").read_text())
    assert "seed" not in json.dumps(manifest)


@pytest.mark.spark
def test_scratch_files_of_spark_are_in_the_evidence_area(plain_runs):
    """Scratch files contain spilled records and remain on disk after a run is killed."""
    folder, ran = plain_runs["published"]
    assert ran.code == 0, ran.err
    assert not (folder / "scratch").exists()
