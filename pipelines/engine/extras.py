"""Extras of the package: the optional modules of each, and the refusal that names missing packages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from types import MappingProxyType

from microguard.schemas.errors import MicroguardError

#: Top-level modules of each extra defined in pyproject.toml.
EXTRAS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "frames": ("pandas",),
        "spark": ("pyspark", "py4j", "pyarrow", "duckdb", "jinja2"),
        "gx": ("great_expectations",),
        "report": ("matplotlib",),
        "lake": ("deltalake", "pyiceberg", "obstore"),
        "workbench": ("nicegui", "tomlkit"),
    }
)
#: Extras that a release needs: Spark, Great Expectations, and the plots of its evidence.
OF_A_RELEASE = ("spark", "gx", "report")


def extras_of_release(table_format: str) -> tuple[str, ...]:
    """Return the extras that a release needs, given the value of ``publish.format``."""
    return OF_A_RELEASE if table_format == "parquet" else (*OF_A_RELEASE, "lake")


class MissingExtra(MicroguardError):
    """Raised if an optional package is not installed."""


def require_extras(*extras: str) -> None:
    """Raise a refusal before the computation starts if packages of these extras are not installed.

    Raises
    ------
    MissingExtra
    """
    missing = {name: extra for extra in extras for name in EXTRAS[extra] if not _installed(name)}
    if missing:
        raise MissingExtra(_sentence(tuple(missing), dict.fromkeys(missing.values())))


def missing_extra(error: ImportError, module: str = "microguard.pipelines") -> MissingExtra | None:
    """Return the refusal for a failed import of an optional package by this module; None for other failures.

    For a module of runs, the refusal names all missing packages of the extra spark, not only the first failed
    import.
    """
    name = (error.name or "").partition(".")[0]
    extras = [extra for extra, names in EXTRAS.items() if name in names]
    if not extras or _installed(name):
        return None
    if extras[0] in ("frames", "spark") and module.startswith("microguard.pipelines"):
        missing = [each for each in (*EXTRAS["frames"], *EXTRAS["spark"]) if not _installed(each)]
        return MissingExtra(_sentence(missing, ("spark",)))
    return MissingExtra(_sentence((name,), extras[:1]))


def _installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    # an import finder refused the name, or a program hides the module
    except (ModuleNotFoundError, ValueError):
        return False


def _sentence(names: Iterable[str], extras: Iterable[str]) -> str:
    wanted = ",".join(extras)
    return f'{", ".join(names)}: not installed. Install it: pip install "microguard[{wanted}]"'
