"""The evidence of a run: every measure and verdict, for the agency alone.

``quality.json`` has these sections (a section that does not apply is left out):

release
    release_id, name, version, at, public_area, k, seed, fingerprint, specification (as it was read).
counts
    input, rejected (reason -> records), suppressed, published, blocks.
risk
    clustering -> before and after, each with the counts of `pipelines.measures.risk.Risk`; where groups are
    protected independently, ``jointly`` -> the same over all of their variables.
loss
    clustering -> sse, sst, information_loss (of the numeric variables as written), objective (what the
    clusterings cost before rounding, nominal variables included), lower_bound (of the objective, given
    the blocking), whole_file_lower_bound (the same whatever the blocking, weak), by_variable (variable ->
    information loss). Bounds are null where they were not proved.
moments
    variable -> mean_before, mean_after, variance_before, variance_after.
correlations
    clustering -> variables, before, after (matrices).
tables
    one entry a control table: variables, dimension, cells, chi2, max_absolute_error,
    max_relative_error, false_positives, errors (absolute error -> cells).
by_dimension
    dimension -> the same, summed or maximised.
uniques_published
    column published as it is -> records unique on the protected variables joined with it.
dominance
    numeric variable -> n, k (the rule), clusters, failing.
stages
    stage -> seconds.
verdicts
    check (input or release), metric, variable, dimension, found, limit, passed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.files import private_folder, write_atomically
from pipelines.publication.areas import Areas

QUALITY = "quality.json"
BLOCKS = "blocks.parquet"


def write_evidence(areas: Areas, release_id: str, quality: Mapping[str, Any], blocks: pa.Table) -> Path:
    """Write measures and block reports to the evidence folder of a release, and the page of them.

    Returns
    -------
    Path
        The page.
    """
    from pipelines.evidence.page import write_report

    folder = private_folder(areas.record(release_id))
    write_atomically(folder / QUALITY, json.dumps(quality, indent=2, sort_keys=True, default=str))
    pq.write_table(blocks, folder / BLOCKS)
    return write_report(folder)


def read_quality(folder: Path) -> dict[str, Any]:
    """Measures of an evidence folder."""
    return dict(json.loads((folder / QUALITY).read_text(encoding="utf-8")))


def read_blocks(folder: Path) -> pa.Table:
    """Block reports of an evidence folder."""
    return pq.read_table(folder / BLOCKS)
