"""An Airflow DAG: each night the release, then an audit of what readers have, from outside.

Copy it with `nightly.py` into the folder of DAGs; workers need microguard, or reach it by `nightly.COMMAND`.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from shlex import quote

from airflow.exceptions import AirflowFailException
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import dag, task
from nightly import protect

SPECIFICATION = "/srv/microguard/persons/release.toml"
PUBLIC_AREA = "/srv/lake/persons"


@dag(
    schedule="30 1 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,  # the second would only say that the first one holds the lock
    tags=["microguard"],
)
def microguard_persons() -> None:
    """Protect, then verify."""

    @task(retries=3, retry_delay=timedelta(minutes=5))
    def release() -> str:
        """Id of the release; a run that died is tried again, one that was refused is not."""
        night = protect(SPECIFICATION)
        if night.refused:
            raise AirflowFailException(night.reason)
        if night.exit_code:
            raise RuntimeError(night.reason)
        return str(night.outcome["release_id"])

    release() >> BashOperator(task_id="verify", bash_command=f"microguard verify {quote(PUBLIC_AREA)}")


microguard_persons()
