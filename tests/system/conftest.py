"""Runs of the command in the default environment, which several test files read."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.system.command import Ran, protect_each


@pytest.fixture(scope="session")
def plain_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Ran]]:
    """Return the folder and the result of each run; all run in one process, the numeric one first.

    The environment makes Spark write scratch files to the folder of the published run.
    """
    from tests.system import test_leaks, test_loaded_modules
    from tests.system.surroundings.runs import specification

    written = {
        "numeric": test_loaded_modules.persons,
        **{ending: partial(test_leaks.written, ending) for ending in test_leaks.ENDINGS},
        "register": specification,
    }
    folders = {name: tmp_path_factory.mktemp("run") for name in written}
    paths = [write(folders[name]) for name, write in written.items()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_LOCAL_DIRS", str(folders["published"] / "scratch"))
        runs = protect_each(*paths)
    return {name: (folders[name], run) for name, run in zip(written, runs, strict=True)}
