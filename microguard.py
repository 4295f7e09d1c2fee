"""Statistical disclosure control for large microdata, on Spark: releases are verified before publication.

`import microguard` is quick, because a public name is imported on first access.

    from microguard import microaggregate
    clusters = microaggregate(records, 3)

The entry point of the command `microguard` is `main`.
"""

from __future__ import annotations

import gc
import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

PUBLIC = {
    "microaggregate": "microguard.sdc.microaggregation",
    "individual_ranking": "microguard.sdc.microaggregation",
    "anonymise": "microguard.sdc.nominal",
    "partition": "microguard.sdc.nominal",
    "aggregate": "microguard.sdc.nominal",
    "safe": "microguard.sdc.safe",
    "SafeParams": "microguard.sdc.safe",
    "CellTable": "microguard.sdc.cta",
    "adjust": "microguard.sdc.cta",
    "SuppressionProblem": "microguard.sdc.suppression",
    "suppress": "microguard.sdc.suppression",
    "suppress_table": "microguard.pipelines.tables.suppression.frame",
    "SdcError": "microguard.sdc.errors",
    "Protection": "microguard.pipelines.protection",
    "protect": "microguard.pipelines.protection",
    "MicroguardError": "microguard.schemas.errors",
    "Specification": "microguard.schemas.specification.model",
    "read_specification": "microguard.schemas.specification.read",
}
"""Map from public name to the module that defines it."""

_HERE = Path(__file__).resolve().parent
#: Folder of the packages jobs, pipelines, schemas and sdc: in a checkout the folder of this file, in a wheel
#: the folder `microguard` next to it.
__path__ = [str(_HERE / "microguard" if (_HERE / "microguard").is_dir() else _HERE)]

__all__ = ["__version__", *PUBLIC]  # noqa: F822 (__getattr__ has them)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from microguard.pipelines.engine.versions import microguard_version

        return microguard_version()
    if name not in PUBLIC:
        raise AttributeError(f"module 'microguard' has no attribute {name!r}")
    archived = in_archive()
    if archived:
        raise ImportError(archived)
    try:
        value = getattr(importlib.import_module(PUBLIC[name]), name)
    except ImportError as error:
        from microguard.pipelines.engine.extras import missing_extra

        missing = missing_extra(error, PUBLIC[name])
        if missing is None:
            raise
        raise ImportError(str(missing)) from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def in_archive() -> str | None:
    """Return the reason for refusing to run if microguard was loaded from an archive, else None."""
    if _HERE.is_dir():
        return None
    # The cache of compiled kernels is keyed by the source files, which cannot be listed in an archive.
    return (
        f"microguard was loaded from an archive, {_HERE.name}, as --py-files ships it: expected packages in "
        "folders, where compiled code can be cached. Install microguard as a package where driver and "
        "workers run (pip install, or the image of deploy/image), and omit --py-files."
    )


class _DeprecatedName(MetaPathFinder, Loader):
    """Import modules of ``sdc``, the name until 0.3, from ``microguard.sdc``, so that each is loaded once."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Find a module below the deprecated name."""
        return spec_from_loader(name, self) if name.startswith("sdc.") else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the module under its current name."""
        module = importlib.import_module(f"microguard.{spec.name}")
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module specification that the import system has replaced."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


def deprecate_sdc() -> None:
    """Register ``sdc`` as an alias of ``microguard.sdc`` with a warning; called by the package ``sdc``."""
    warnings.warn(
        "the name sdc is deprecated and will be removed in a later minor version: "
        "import microguard.sdc instead",
        DeprecationWarning,
        stacklevel=3,
    )
    if not any(isinstance(each, _DeprecatedName) for each in sys.meta_path):
        sys.meta_path.insert(0, _DeprecatedName())
    sys.modules["sdc"] = importlib.import_module("microguard.sdc")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the verb that the command line names, and return the exit code."""
    archived = in_archive()
    if archived:
        print(archived, file=sys.stderr)
        return 1
    command_line = sys.argv[1:] if arguments is None else list(arguments)
    try:
        from microguard.jobs.command import INTERRUPTED, run_command
        from microguard.jobs.process import exit_process, prepare_process

        refused = prepare_process(command_line)
        if refused:
            print(refused, file=sys.stderr)
            return 1
        exit_code = run_command(command_line)
    except KeyboardInterrupt:  # the command does not handle signals yet
        if not any(word.startswith("--log") for word in command_line):  # with --log all lines are JSON
            print("Interrupted before the command started. Call this again.", file=sys.stderr)
        return 130
    if exit_code == INTERRUPTED:
        exit_process(exit_code)
    # Without this, Python traverses all objects once more when the process ends, which takes a second. DuckDB
    # would report objects that were not collected as leaks.
    if "duckdb" not in sys.modules:
        gc.freeze()
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
