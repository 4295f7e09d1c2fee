"""One Spark session for all tests, started by the first that asks; no JVM without the marker `spark`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

#: Examples of a property here, and in a long run (`pytest --hypothesis-profile long`). Without a deadline, as
#: the first example of a test compiles kernels.
settings.register_profile("suite", max_examples=20, deadline=None)
settings.register_profile("long", max_examples=300, deadline=None)
settings.load_profile("suite")

#: Folder for pictures of pages; by default "pictures" in the base of pytest's own folders.
PICTURES = "MICROGUARD_PICTURES"
#: Stands in for `java` where a test has no marker: writes down that it was called, and fails.
_TRAP = """#!/bin/sh
: >"$MICROGUARD_JAVA_CALLED"
exit 1
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that takes long runs along."""
    parser.addoption("--long", action="store_true", help="take the tests marked long, too")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Whatever uses the session has the marker, so that `-m "not spark"` starts no JVM; long runs wait."""
    if item.get_closest_marker("long") is not None and not item.config.getoption("--long"):
        item.add_marker(pytest.mark.skip(reason="a long run: --long takes it"))
    if "spark" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A small quiet session, as for a tiny input; two tasks after a shuffle, so that their order shows."""
    from microguard.pipelines.engine.jvm import InputSize
    from microguard.pipelines.engine.session import open_session

    private = tmp_path_factory.mktemp("spark")
    chosen = {"spark.driver.memory": "2g", "spark.sql.shuffle.partitions": "2"}
    session = open_session("local[2]", private, chosen, size=InputSize.TINY, clustering=True)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pictures of pages stay after the tests, to be looked at."""
    given = os.environ.get(PICTURES)
    folder = Path(given) if given else tmp_path_factory.getbasetemp() / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(autouse=True)
def _clean_catalog(request):
    """Leave no cached frame behind in the shared session."""
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
    """Fail a test without the marker that looks for Java, itself or in a process that it starts."""
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
