"""Airflow DAG that publishes a release every night, and then audits the published files.

Copy it together with `nightly.py` into the folder of DAGs. Workers need microguard, or `nightly.COMMAND` must
start it on another machine.
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
    max_active_runs=1,  # a second run would be refused, because the first run holds the lock
    tags=["microguard"],
)
def microguard_persons() -> None:
    """Protect the microdata, then verify the release."""

    @task(retries=3, retry_delay=timedelta(minutes=5))
    def release() -> str:
        """Publish a release and return its id; a killed run is retried, and a refused run is not."""
        result = protect(SPECIFICATION)
        if result.refused:
            raise AirflowFailException(result.reason)
        if result.exit_code:
            raise RuntimeError(result.reason)
        return str(result.outcome["release_id"])

    release() >> BashOperator(task_id="verify", bash_command=f"microguard verify {quote(PUBLIC_AREA)}")


microguard_persons()
