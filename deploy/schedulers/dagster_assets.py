"""A Dagster asset with its schedule: each night the release, with the figures that may be seen.

`dagster dev --python-file deploy/schedulers/dagster_assets.py`, with `nightly.py` beside it.
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
    """The protected release; a run that died is tried again, one that was refused is not."""
    night = protect(SPECIFICATION)
    if night.exit_code:
        raise Failure(night.reason, allow_retries=not night.refused)
    return MaterializeResult(metadata={"release": str(night.outcome["release_id"])})


_job = define_asset_job("microguard_persons", selection=[persons])
definitions = Definitions(
    assets=[persons], jobs=[_job], schedules=[ScheduleDefinition(job=_job, cron_schedule="30 1 * * *")]
)
