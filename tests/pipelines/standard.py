"""Two releases that many tests read, each created once: mixed variables, and nominal variables."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from microguard.pipelines.engine.command_result import CommandResult
from microguard.pipelines.publication.areas import Areas
from microguard.schemas.specification.model import Specification

from tests.pipelines.microdata import NOMINAL, ROLES, persons, published, quality, run, specification

#: Blocks are small, so that each region has several.
BLOCK = 12
#: Columns of persons; `note` is unique, so that a test can identify each person.
MIXED = ROLES | {"home": {"role": "household"}}
RULES = {"grown_up": "sex = 'f' -> age >= 25", "known": "income is not missing"}


@dataclass(frozen=True)
class StandardRelease:
    """A published release that tests read and never change.

    Attributes
    ----------
    original, frame : DataFrame
        Records as read, and as published, sorted.
    population : DataFrame
        How many people have each region and sex.
    found : dict
        The measures of the evidence.
    """

    original: pd.DataFrame
    population: pd.DataFrame
    spec: Specification
    answer: CommandResult
    areas: Areas
    frame: pd.DataFrame
    found: dict[str, Any]

    @property
    def folder(self) -> Path:
        return self.areas.public.release(self.areas.public.current())

    @property
    def record(self) -> Path:
        return self.areas.record(self.areas.public.current())


def written(folder, original, roles, **sections):
    """Return the specification of a standard release, with its input in a folder."""
    (folder / "data").mkdir()
    original.to_parquet(folder / "data" / "0.parquet", index=False)
    people = {"path": "counts", "count": "people", "variables": ["sex", "region"]}
    counts(original).to_parquet(folder / "counts")
    return specification(
        folder,
        roles,
        blocking={"max_records": BLOCK},
        method={"effort": "fast"},
        population=people,
        rules=RULES,
        **sections,
    )


def counts(original):
    """Return a population: the first combination has 0 persons, the second 1, and so on."""
    found = original.groupby(["region", "sex"], dropna=False).size().reset_index(name="people")
    return found.assign(people=np.arange(len(found)))


def mixed_persons():
    frame = persons(90)
    return frame.assign(note=[f"p{i}" for i in range(len(frame))], home=np.arange(len(frame)) // 3)


def nominal_persons():
    frame = persons(90)
    frame.loc[:4, "sex"] = None
    return frame


def mixed(spark, folder):
    return _released(spark, folder, mixed_persons(), MIXED)


def nominal(spark, folder):
    return _released(spark, folder, nominal_persons(), NOMINAL)


def _released(spark, folder, original, roles):
    spec = written(folder, original, roles)
    answer, areas = run(spark, spec)
    return StandardRelease(original, counts(original), spec, answer, areas, published(areas), quality(areas))
