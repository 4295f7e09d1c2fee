"""One Spark session for all tests, started by the first that asks for it."""

import pytest


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A small quiet session: UI off, loopback only, few shuffle partitions."""
    from pipelines.engine.session import open_session

    private = tmp_path_factory.mktemp("spark")
    session = open_session(
        "local[2]", private, {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "2g"}
    )
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def _clean_catalog(request):
    """Leave no cached frame behind in the shared session."""
    yield
    if "spark" in request.fixturenames:
        request.getfixturevalue("spark").catalog.clearCache()
