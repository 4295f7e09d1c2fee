"""Dagster asset that publishes a release every night.

Start it with `dagster dev --python-file deploy/schedulers/dagster_assets.py`; `nightly.py` must be in the
same folder.
"""

from __future__ import annotations

from dagster import (
    Definitions,
    Failure,
    MaterializeResult,
    RetryPolicy,
    ScheduleDefinition,
    asset,
    define_asset_job,
)
from nightly import protect

SPECIFICATION = "/srv/microguard/persons/release.toml"


@asset(retry_policy=RetryPolicy(max_retries=3, delay=300))
def persons() -> MaterializeResult:
    """Publish a release; a killed run is retried, and a refused run is not."""
    result = protect(SPECIFICATION)
    if result.exit_code:
        raise Failure(result.reason, allow_retries=not result.refused)
    return MaterializeResult(metadata={"release": str(result.outcome["release_id"])})


_job = define_asset_job("microguard_persons", selection=[persons])
definitions = Definitions(
    assets=[persons], jobs=[_job], schedules=[ScheduleDefinition(job=_job, cron_schedule="30 1 * * *")]
)
