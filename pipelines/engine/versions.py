"""Version of microguard, and versions of the packages that affect protected values.

The same input, specification and seed give other values if one of these packages changes:

* highspy: which of several optimal solutions HiGHS returns;
* numpy: streams of its generators, the order of equal elements in a sort, the last bits of sums;
* scipy: ties of assignments, the last bits of its LAPACK;
* numba: what a compiled kernel computes for functions of NumPy. Its version fixes that of llvmlite, and
  kernels keep IEEE arithmetic (`sdc.kernels.compile`), so llvmlite needs no entry.

pandas, pyarrow and Spark only move values or compute exactly, so their versions do not affect values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path

DECIDING = ("highspy", "numba", "numpy", "scipy")
_PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
_DECLARED = re.compile(r'^name = "microguard"\nversion = "([^"]+)"$', re.MULTILINE)


@cache
def microguard_version() -> str:
    """Return the version in the pyproject.toml of the checkout, or that of the installed wheel.

    The checkout is read first, because the metadata of an editable installation have the version at the time
    of installation.
    """
    declared = _DECLARED.search(_PROJECT.read_text(encoding="utf-8")) if _PROJECT.is_file() else None
    return declared[1] if declared else version("microguard")


def deciding_versions() -> dict[str, str]:
    """Return the versions of the packages in `DECIDING`, as installed in this process."""
    return {package: _version(package) for package in DECIDING}


def in_words(versions: Mapping[str, str]) -> str:
    """Return versions as text: "highspy 1.15.1, numba 0.68.1"."""
    return ", ".join(f"{package} {number}" for package, number in sorted(versions.items()))


@cache
def _version(package: str) -> str:
    return version(package)
