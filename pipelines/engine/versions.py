"""Versions of the packages that decide protected values.

The same input, specification and seed give other values if one of these changes:

* highspy: which of several optimal solutions HiGHS returns;
* numpy: streams of its generators, the order of equal elements in a sort, the last bits of sums;
* scipy: ties of assignments, the last bits of its LAPACK;
* numba: what a compiled kernel computes for functions of NumPy. Its version fixes that of llvmlite, and
  kernels keep IEEE arithmetic (`sdc.kernels.compile`), so llvmlite needs no entry.

pandas, pyarrow and Spark move values and compute exactly, so they decide none.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import version

DECIDING = ("highspy", "numba", "numpy", "scipy")


def deciding_versions() -> dict[str, str]:
    """Return the versions of `DECIDING` in this process, by package."""
    return {package: _version(package) for package in DECIDING}


def in_words(versions: Mapping[str, str]) -> str:
    """Return versions as text: "highspy 1.15.1, numba 0.68.1"."""
    return ", ".join(f"{package} {number}" for package, number in sorted(versions.items()))


@cache
def _version(package: str) -> str:
    return version(package)
