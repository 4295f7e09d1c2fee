"""Statistical disclosure control for large microdata, on Spark: verified, or not published.

`import microguard` is quick: a name is imported when it is asked for.

    from microguard import microaggregate
    clusters = microaggregate(records, 3)

The command `microguard` starts in `main`.
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
    "SdcError": "microguard.sdc.errors",
    "Protection": "microguard.pipelines.protection",
    "MicroguardError": "microguard.schemas.errors",
    "Specification": "microguard.schemas.specification.model",
    "read_specification": "microguard.schemas.specification.read",
}
"""Public name -> the module that holds it."""

_HERE = Path(__file__).resolve().parent
#: Where microguard.jobs, .pipelines, .schemas and .sdc are: next to this file in a checkout, in a wheel below
#: a folder of this name.
__path__ = [str(_HERE / "microguard" if (_HERE / "microguard").is_dir() else _HERE)]

__all__ = ["__version__", *PUBLIC]  # noqa: F822 (__getattr__ has them)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("microguard")
    if name not in PUBLIC:
        raise AttributeError(f"module 'microguard' has no attribute {name!r}")
    archived = in_archive()
    if archived:
        raise ImportError(archived)
    value = getattr(importlib.import_module(PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def in_archive() -> str | None:
    """What to say if microguard was loaded from an archive; None if it is in a folder."""
    if _HERE.is_dir():
        return None
    return (  # compiled kernels are named by the sources, which nobody can list in there
        f"microguard was loaded from an archive, {_HERE.name}, as --py-files ships it: expected packages "
        "in folders, where compiled code can be kept. Install microguard as a package where driver and "
        "workers run (pip install, or the image of deploy/image), and leave out --py-files."
    )


class _DeprecatedName(MetaPathFinder, Loader):
    """Import ``sdc``, the name until 0.3, as ``microguard.sdc``, so that each module exists once."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Find a module below the deprecated name."""
        return spec_from_loader(name, self) if name.startswith("sdc.") else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the module by its name of today."""
        module = importlib.import_module(f"microguard.{spec.name}")
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Put back the specification that the import system has replaced."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


def deprecate_sdc() -> None:
    """Let ``sdc`` mean ``microguard.sdc``, with a warning; called by whatever is imported as ``sdc``."""
    warnings.warn(
        "the name sdc is deprecated and goes with the next minor version: import microguard.sdc instead",
        DeprecationWarning,
        stacklevel=3,
    )
    if not any(isinstance(each, _DeprecatedName) for each in sys.meta_path):
        sys.meta_path.insert(0, _DeprecatedName())
    sys.modules["sdc"] = importlib.import_module("microguard.sdc")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the verb that the command line names; the exit code."""
    archived = in_archive()
    if archived:
        print(archived, file=sys.stderr)
        return 1
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        from microguard.jobs.command import INTERRUPTED, run_command
        from microguard.jobs.process import leave, prepare

        refused = prepare(given)
        if refused:
            print(refused, file=sys.stderr)
            return 1
        exit_code = run_command(given)
    except KeyboardInterrupt:  # before the command answers for itself
        if not any(word.startswith("--log") for word in given):  # whose lines are JSON
            print("Interrupted. Nothing was begun. Call this again.", file=sys.stderr)
        return 130
    if exit_code == INTERRUPTED:
        leave(exit_code)
    if "duckdb" not in sys.modules:  # it counts what was not collected as leaks, and prints a page of them
        gc.freeze()  # as the process ends, Python would look through all objects once more: a second
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
