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
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PUBLIC = {
    "microaggregate": "sdc.microaggregation",
    "individual_ranking": "sdc.microaggregation",
    "anonymise": "sdc.nominal",
    "partition": "sdc.nominal",
    "aggregate": "sdc.nominal",
    "safe": "sdc.safe",
    "SafeParams": "sdc.safe",
    "CellTable": "sdc.cta",
    "adjust": "sdc.cta",
    "SdcError": "sdc.errors",
    "Protection": "pipelines.protection",
    "MicroguardError": "schemas.errors",
    "Specification": "schemas.specification.model",
    "read_specification": "schemas.specification.read",
}
"""Public name -> the module that holds it."""
PACKAGES = ("jobs", "pipelines", "schemas", "sdc")

__all__ = ["__version__", *PUBLIC]  # noqa: F822 (__getattr__ has them)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("microguard")
    if name not in PUBLIC:
        raise AttributeError(f"module 'microguard' has no attribute {name!r}")
    misplaced = misplaced_packages()
    if misplaced:
        raise ImportError(misplaced)
    value = getattr(importlib.import_module(PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def misplaced_packages() -> str | None:
    """What to say where ours lie in an archive, or others hide them; None where all is well."""
    here = Path(__file__).resolve().parent
    if not here.is_dir():  # compiled kernels are named by the sources, which nobody can list in there
        return (
            f"microguard was loaded from an archive, {here.name}, as --py-files ships it: expected packages "
            "in folders, where compiled code can be kept. Install microguard as a package where driver and "
            "workers run (pip install, or the image of deploy/image), and leave out --py-files."
        )
    others = {name: folder for name in PACKAGES if (folder := _folder(name)) != here / name}
    if not others:
        return None
    places = ", ".join(f"{name} ({folder or 'not found'})" for name, folder in others.items())
    return (
        f"microguard finds other packages in place of its own: {places}; expected them in {here}. "
        "Start it from another folder, take that folder out of PYTHONPATH, or give microguard an environment "
        "of its own."
    )


def _folder(name: str) -> Path | None:
    """Where the package lies that an import of this name would give."""
    if name in sys.modules:
        places = list(getattr(sys.modules[name], "__path__", []))
        origin = getattr(sys.modules[name], "__file__", None)
    else:
        module_spec = find_spec(name)
        places = list((module_spec and module_spec.submodule_search_locations) or [])
        origin = module_spec.origin if module_spec else None
    if not places and not origin:
        return None
    return Path(places[0] if places else str(origin)).resolve()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the verb that the command line names; the exit code."""
    misplaced = misplaced_packages()
    if misplaced:
        print(misplaced, file=sys.stderr)
        return 1
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        from jobs.command import INTERRUPTED, run_command
        from jobs.process import leave, prepare

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
