"""Whole jobs of the pairwise tests end in a release that keeps its guarantees, or in a refusal by name.

Each release is audited from outside: an audit that refuses a correct release fails, too.
"""

from __future__ import annotations

import pandas as pd
import pyarrow.dataset as ds
import pytest
from microguard.pipelines.audit.release import audit
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.job import Job
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.publish import finish_what_died
from microguard.pipelines.records.product import Records
from microguard.pipelines.release import run
from microguard.schemas.errors import GateRefused, InputRejected, SpecificationError
from microguard.schemas.specification.read import build_specification

from tests.system.pairwise.jobs import CANARY, NOTE, PairwiseJob
from tests.system.pairwise.promise import broken
from tests.system.pairwise.table import read_rows

pytestmark = pytest.mark.spark
JOBS = [PairwiseJob(row) for row in read_rows()]
#: Number of jobs that always run; all others take half an hour (`--long`).
QUICK = 4


def _first(jobs: list[PairwiseJob], number: int) -> list[PairwiseJob]:
    """Choose inexpensive jobs that together contain most of the values."""
    chosen: list[PairwiseJob] = []
    cheap = [job for job in jobs if job.row["effort"] == "fast" or job.row["algorithm"] in ("auto", "random")]
    while len(chosen) < number:
        covered = {value for job in chosen for value in job.row.items()}
        chosen.append(max(cheap, key=lambda job: len(set(job.row.items()) - covered)))
    return chosen


def _published(spark, specification) -> pd.DataFrame | None:
    """Run the job; return its published release, or None if it was refused by name."""
    areas = Areas.from_places(specification.public_area, specification.evidence_area)
    with areas.lock():
        finish_what_died(areas)
        try:
            outcome = run(Records(specification), Job(spark, specification, areas, Progress(quiet=True)))
        except (SpecificationError, InputRejected, GateRefused) as error:
            refusal = str(error)
        else:
            refusal = ""
            assert "already" not in outcome.summary()
    if refusal:
        assert CANARY not in refusal
        print(refusal)
        return None
    release = areas.public.release(areas.public.current())
    assert not audit(release).failures()
    folder = release / "microdata"
    return ds.dataset(folder, partitioning="hive").to_table().to_pandas()


QUICK_JOBS = _first(JOBS, QUICK)


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(job, id=f"{number}: {job}", marks=() if job in QUICK_JOBS else pytest.mark.long)
        for number, job in enumerate(JOBS)
    ],
)
def test_pairwise_job_meets_its_guarantees_or_is_refused_by_name(spark, tmp_path, job):
    for night in job.nights:
        job.write(tmp_path, night)
        specification = build_specification(job.content, tmp_path)
        release = _published(spark, specification)
        if release is None:
            return
        key = NOTE if NOTE in release else None
        faults = list(broken(job, release, job.accepted_of(night), key))
        assert not faults, faults
