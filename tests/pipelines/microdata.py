"""Small inputs and specifications for the tests of the pipelines."""

import json

import numpy as np
import pandas as pd
import pyarrow.dataset as ds
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.job import Job
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.publish import finish_what_died
from microguard.pipelines.records.product import Records
from microguard.pipelines.release import run as run_product
from microguard.schemas.specification.consistency import HELD_BY_DEFAULT
from microguard.schemas.specification.read import build_specification

ROLES = {
    "person": {"role": "unit"},
    "name": {"role": "identifier"},
    "region": {"role": "region"},
    "sex": {"role": "quasi_identifier", "kind": "nominal"},
    "age": {"role": "quasi_identifier", "kind": "numeric"},
    "income": {"role": "quasi_identifier", "kind": "numeric"},
    "diagnosis": {"role": "sensitive"},
    "weight": {"role": "weight"},
    "note": {"role": "other"},
}
#: The same with nominal quasi-identifiers only.
NOMINAL = ROLES | {
    "age": {"role": "quasi_identifier", "kind": "nominal"},
    "income": {"role": "other"},
}


def persons(n=60, seed=1):
    """Persons in three regions, with ties and duplicates among them."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "person": np.arange(n),
            "name": [f"CANARY{i}" for i in range(n)],
            "region": np.array(["north", "south", "west"])[rng.integers(0, 3, n)],
            "sex": np.array(["f", "m"])[rng.integers(0, 2, n)],
            "age": rng.integers(18, 30, n).astype(np.int16),
            "income": np.round(rng.lognormal(7, 1, n), 2),
            "diagnosis": np.array(["a", "b", "c"])[rng.integers(0, 3, n)],
            "weight": np.round(rng.uniform(1, 5, n), 1),
            "note": [f"n{i % 7}" for i in range(n)],
        }
    )
    half = frame.iloc[: n // 6].assign(person=np.arange(n, n + n // 6), name="CANARY")
    return pd.concat([frame, half], ignore_index=True)


def content(roles=None, **sections):
    """Return the parsed TOML of a specification; the given sections replace or add keys.

    At effort fast: a search at standard takes as long as all else of a run on so few records.
    """
    base = {
        "release": {"name": "persons", "k": 3, "seed": 1},
        "input": {"path": "data"},
        "method": {"effort": "fast"},
        "variables": dict(roles or ROLES),
        "quality": {"accept": dict.fromkeys(HELD_BY_DEFAULT, "a test of something else")},
        "publish": {"path": "lake", "evidence": "evidence"},
    }
    for name, section in sections.items():
        base[name] = base.get(name, {}) | section if isinstance(section, dict) else section
    return base


def specification(folder, roles=None, **sections):
    """Return a validated specification whose paths are in `folder`."""
    return build_specification(content(roles, **sections), folder)


def csv_specification(folder, roles, **options):
    """Return the specification of a file data.csv with these keys of `[input]`."""
    return specification(folder, roles, input={"path": "data.csv", "format": "csv", **options})


def run(spark, spec, measures=None):
    """Publish on a session that stays open; return the answer and the areas.

    `measures` are the names of those to compute. By default all that apply are computed, which takes a fifth
    of the time of a small release; a test that reads none of them passes ().
    """
    areas = Areas.from_places(spec.public_area, spec.evidence_area)
    with areas.lock():
        finish_what_died(areas)
        return run_product(records(spec, measures), Job(spark, spec, areas, Progress(quiet=True))), areas


def records(spec, measures=None):
    """Return the product of a specification, with all its measures or those of these names."""
    product = Records(spec)
    if measures is not None:
        product.measures = tuple(each for each in product.measures if each.name in measures)
    return product


def published(areas):
    """Return the protected records of the current release, as a sorted frame."""
    folder = areas.public.release(areas.public.current()) / "microdata"
    frame = ds.dataset(folder, partitioning="hive").to_table().to_pandas()
    return frame.sort_values(list(frame.columns), ignore_index=True)


def quality(areas):
    """Return the measures of the current release from its evidence."""
    return json.loads((areas.record(areas.public.current()) / "quality.json").read_text())
