"""Compare the search in partitions with one process, for many regions and tables up to dimension 2.

The partitions are in the memory of this process and are searched one after the other. The results are those
of Spark's tasks, and times are CPU seconds of one core.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from microguard.pipelines.demo import QUASI_IDENTIFIERS, SEED
from microguard.pipelines.synthetic.dataset import generate_persons
from microguard.sdc.nominal.control_tables import ControlTables, named_tables
from microguard.sdc.nominal.frequency import FrequencyVector, collapse
from microguard.sdc.nominal.frequency_search.search import protect_frequencies
from microguard.sdc.nominal.methods import ProtectionTask
from microguard.sdc.nominal.partitions.part import PartitionRequest
from microguard.sdc.nominal.partitions.reconcile import PART
from microguard.sdc.nominal.region_levels import REGION, RegionLevels

from tests.benchmarks.table import Table
from tests.sdc.nominal.partitions.in_memory import protected_in_parts

K = 3
NAMES = tuple(QUASI_IDENTIFIERS["nominal"])
#: Records, regions, key combinations per partition, and whether the partitions try as many moves as one
#: process. The small file is cut as finely as a large one would be; otherwise it would not be partitioned.
TOWNS = ((100_000, 400, 10_000, True), (1_000_000, 2_000, PART, False))


def tables(quick: bool = False) -> dict[str, Callable[[], Table]]:
    """Return one table."""
    return {"combinations in parts": partial(table, quick)}


def table(quick: bool = False) -> Table:
    """Compare files at effort fast; quick: only the smaller one."""
    rows: list[tuple[object, ...]] = []
    for records, regions, most, as_many in TOWNS[:1] if quick else TOWNS:
        file = regional_town(records, regions)
        by_region = tuple((REGION, name) for name in NAMES)
        levels = RegionLevels.single(regions)
        request = PartitionRequest(K, (*named_tables(file, 2), *by_region), levels, "fast")
        control = ControlTables.of(file, request.tables, levels=levels)
        begin = time.process_time()
        searched = protect_frequencies(ProtectionTask(file, K, control, effort=request.effort))
        one, middle = searched.counts, time.process_time()
        if as_many:  # the search accepts a tenth of the proposals
            request = replace(request, moves=round(searched.work / 1.1 / file.at_risk(K).sum()))
        counts, parts, errors = protected_in_parts(file, request, most)
        seconds = time.process_time() - middle
        _assert_protected(file, counts)
        assert np.array_equal(errors, control.errors(counts)[control.level == 0])
        here = (records, regions, len(file))
        rows.append((*here, "one process", searched.work, *_figures(control, one), middle - begin))
        rows.append((*here, f"{len(parts)} parts", parts.work, *_figures(control, counts), seconds))
        of_one, of_parts = _objective(control, one), _objective(control, counts)
        assert of_parts <= 1.1 * of_one, f"{of_parts} in partitions, {of_one} in one process"
    return Table(
        f"Combinations in parts, k = {K}, 8 nominal quasi-identifiers, tables to dimension 2, region by one",
        (
            "records",
            "regions",
            "combinations",
            "searched in",
            "moves",
            "chi2 national",
            "chi2 region x 1",
            "max error 1-dim",
            "2-dim",
            "by region",
            "CPU s",
        ),
        rows,
        "What is minimised, national chi2 and 0.3 times that by region, at most 1.1 times that of one "
        "process. Effort fast; the parts of the smaller town try as many moves as the one process.",
    )


def regional_town(records: int, regions: int) -> FrequencyVector:
    """Generate demo persons whose households are in this number of regions of different size."""
    persons = pa.concat_tables(
        [chunk.select([*NAMES, "household"]) for chunk in generate_persons(records, SEED)]
    )
    categories = [pc.unique(persons[name]) for name in NAMES]
    categories = [values.take(pc.array_sort_indices(values)) for values in categories]
    codes = [
        pc.index_in(persons[name], value_set=values).to_numpy()
        for name, values in zip(NAMES, categories, strict=True)
    ]
    household = persons["household"].to_numpy()
    random = np.random.default_rng(7)
    shares = random.dirichlet(np.full(regions, 3.0))
    region = random.choice(regions, p=shares, size=household.max() + 1)[household]
    sizes = np.array([len(values) for values in categories])
    return collapse(np.column_stack(codes), sizes, NAMES, regions=region.astype(np.int32))[0]


def _assert_protected(file: FrequencyVector, counts: np.ndarray) -> None:
    region = file.region_of()
    assert ((counts == 0) | (counts >= K)).all()
    assert np.array_equal(np.bincount(region, counts), np.bincount(region, file.counts))


def _chi2(control: ControlTables, counts: np.ndarray, national: bool) -> float:
    squares = control.errors(counts) ** 2 * control.reciprocals
    return float(squares[(control.level == 0) == national].sum())


def _objective(control: ControlTables, counts: np.ndarray) -> float:
    return _chi2(control, counts, True) + 0.3 * _chi2(control, counts, False)


def _figures(control: ControlTables, counts: np.ndarray) -> tuple[object, ...]:
    largest, by_region = control.max_absolute_error(counts), control.region_errors(counts)[REGION]
    chi2 = _chi2(control, counts, True), _chi2(control, counts, False)
    return *chi2, largest[1], largest[2], by_region[1]
