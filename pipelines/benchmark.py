"""The verb ``benchmark``: run benchmarks of the repository, which compare results with known figures."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import platform
import sys
from collections.abc import Callable
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from microguard.pipelines.engine.command_result import CommandResult
from microguard.pipelines.engine.versions import microguard_version
from microguard.schemas.errors import MicroguardError, SpecificationError
from microguard.sdc.errors import SdcError

PACKAGE = "tests.benchmarks"
#: Benchmarks that run only if they are named, because they install packages.
BY_NAME = "peers"
_ROOT = Path(__file__).resolve().parents[1]


def benchmark(name: str | None = None, *, quick: bool = False, show: Callable[[str], None]) -> CommandResult:
    """Run one benchmark, or all of them.

    Parameters
    ----------
    name : str, optional
        A module of `tests.benchmarks`; by default all except `BY_NAME`.
    quick : bool
        Whether to use smaller instances, with the same assertions.
    show : callable
        Called with each table as soon as it is computed, because a benchmark may take hours.

    Raises
    ------
    SpecificationError
        If the tests of the repository are not installed, or have no benchmark of this name.
    MicroguardError
        If a required figure is not reached, or a method failed.
    """
    known = _known()
    if name is not None and name not in known:
        close = get_close_matches(name, known, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise SpecificationError(f"There is no benchmark {name!r}. Known: {', '.join(known)}.{hint}")
    content: dict[str, list[dict[str, Any]]] = {}
    for each in [each for each in known if each != BY_NAME] if name is None else [name]:
        content[each] = []
        try:
            for table in importlib.import_module(f"{PACKAGE}.{each}").run(quick=quick):
                show(table.markdown())
                rows = [list(row) for row in table.rows]
                content[each].append({"title": table.title, "columns": list(table.columns), "rows": rows})
        except (SdcError, AssertionError) as error:  # neither of these errors contains a value of a record
            raise MicroguardError(
                f"The benchmark {each} stopped. {type(error).__name__}: {error}. A figure that it asserts "
                "is not met on this machine or with this version: compare with the figures in "
                "docs/benchmarks."
            ) from error
    count = sum(map(len, content.values()))
    where = (
        f"microguard {microguard_version()}, Python {platform.python_version()} on {platform.system()} "
        f"{platform.machine()}, {os.cpu_count()} cores, {date.today().isoformat()}"
    )
    text = f"{count} tables; every answer was checked before it was shown. {where}."
    return CommandResult(text, {"benchmarks": content, "measured_on": where})


def _known() -> list[str]:
    """List the modules of the package that have a `run`, sorted, without importing them."""
    package = _package()
    if package is None:
        raise SpecificationError(
            "The benchmarks are not installed: they are in tests/benchmarks of the repository. Run this verb "
            "in a checkout that is installed in place."
        )
    modules = [module for module in pkgutil.iter_modules(package.__path__) if not module.ispkg]
    names = sorted(module.name for module in modules if not module.name.startswith("test_"))
    return [name for name in names if _has_run(package, name)]


def _package() -> ModuleType | None:
    """Return the benchmarks of the checkout of an editable installation; a wheel has none."""
    if (_ROOT / Path(*PACKAGE.split("."))).is_dir() and str(_ROOT) not in sys.path:
        sys.path.insert(0, str(_ROOT))
    try:
        return importlib.import_module(PACKAGE)
    except ModuleNotFoundError:
        return None


def _has_run(package: ModuleType, name: str) -> bool:
    module_spec = importlib.util.find_spec(f"{package.__name__}.{name}")
    source = module_spec.loader.get_source(module_spec.name) if module_spec and module_spec.loader else ""  # type: ignore[attr-defined]
    return "\ndef run(" in (source or "")
