"""What the check of a Delta or Iceberg table says of a release, and the ids of later releases."""

import pyarrow as pa
from microguard.pipelines.audit.release import audit

SECOND, THIRD = "f" * 32, "e" * 32
ONE_MORE = pa.table({"sex": ["x"], "hours": pa.array([1], pa.int8())})


def found(areas, release_id=THIRD):
    """Return whether the check of the table passes, and its detail without the name of the table."""
    (finding,) = [each for each in audit(areas.public.release(release_id)).findings if " table" in each.check]
    return finding.passed, finding.detail.removeprefix("its records are those of the files").removeprefix(
        "; "
    )


def log(table, version, suffix="json"):
    return table / "_delta_log" / f"{version:020}.{suffix}"
