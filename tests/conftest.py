"""Fixtures for all tests: one shared Spark session, and no JVM without the marker `spark`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from microguard.jobs.process import ONE_THREAD

# as in the process of a command, and before numpy is imported: a second thread of OpenBLAS waits busily
os.environ.setdefault(*ONE_THREAD)
# Numbers of examples of a property, by default and with `pytest --hypothesis-profile long`. There is no
# deadline, because the first example of a test may compile kernels.
settings.register_profile("suite", max_examples=10, deadline=None)
settings.register_profile("long", max_examples=300, deadline=None)
settings.load_profile("suite")

#: Folder for pictures of pages; by default "pictures" in the base of pytest's own folders.
PICTURES = "MICROGUARD_PICTURES"
#: Replacement for `java` in tests without the marker: it records that it was called, and fails.
_TRAP = """#!/bin/sh
: >"$MICROGUARD_JAVA_CALLED"
exit 1
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for long tests."""
    parser.addoption("--long", action="store_true", help="also run the tests marked long")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark tests that use the session, so that `-m "not spark"` starts no JVM, and skip long tests."""
    if item.get_closest_marker("long") is not None and not item.config.getoption("--long"):
        item.add_marker(pytest.mark.skip(reason="a long test: run it with --long"))
    if "spark" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.spark)
    if item.nodeid.startswith("tests/sdc/") and item.get_closest_marker("spark") is not None:
        raise pytest.UsageError(
            f"{item.nodeid}: expected no Spark in tests/sdc, where deploy/local does not look for it"
        )


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """Start a small session; two tasks after each shuffle reveal results that depend on their order."""
    from microguard.pipelines.engine.jvm import InputSize
    from microguard.pipelines.engine.session import open_session

    private = tmp_path_factory.mktemp("spark")
    chosen = {"spark.driver.memory": "2g", "spark.sql.shuffle.partitions": "2"}
    session = open_session("local[2]", private, chosen, size=InputSize.TINY, clustering=True)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder for pictures of pages, which is kept after the tests."""
    given = os.environ.get(PICTURES)
    folder = Path(given) if given else tmp_path_factory.getbasetemp() / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(autouse=True)
def _clean_catalog(request):
    """Clear cached frames of the shared session after each test."""
    yield
    if "spark" in request.fixturenames:
        request.getfixturevalue("spark").catalog.clearCache()


@pytest.fixture(scope="session")
def _java_trap(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("java")
    (home / "bin").mkdir()
    launcher = home / "bin" / "java"
    launcher.write_text(_TRAP)
    launcher.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def _no_java_without_the_marker(
    request: pytest.FixtureRequest, _java_trap: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Fail a test without the marker if it or one of its processes starts Java."""
    if request.node.get_closest_marker("spark") is not None:
        yield
        return
    called = _java_trap / "called"
    called.unlink(missing_ok=True)
    with monkeypatch.context() as patch:
        patch.setenv("MICROGUARD_JAVA_CALLED", str(called))
        patch.setenv("JAVA_HOME", str(_java_trap))
        patch.setenv("PATH", f"{_java_trap / 'bin'}{os.pathsep}{os.environ['PATH']}")
        yield
    if called.exists():
        pytest.fail("this test starts Java and has no marker: add @pytest.mark.spark", pytrace=False)
