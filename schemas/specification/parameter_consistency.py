"""Parameters of one algorithm where another is asked for, or that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator

from schemas.methods import TWO_STEP
from schemas.specification.faults import Fault, Path, fault
from schemas.specification.model import Specification


def parameter_faults(spec: Specification) -> Iterator[Fault]:
    """Faults of `[method.two_step]`, `[method.chi_exact]` and `[method.safe]`."""
    method = spec.method
    if method.two_step is not None and method.algorithm not in TWO_STEP:
        key: Path = ("method", "two_step")
        yield fault(key, "a section", f"no such section with algorithm {method.algorithm}, but with own-...")
    weight = method.chi_exact.deviation_weight
    if weight > 0 and method.algorithm != "chi-exact":
        key = ("method", "chi_exact", "deviation_weight")
        yield fault(key, weight, f"no such key with algorithm {method.algorithm}, but with chi-exact")
    given = method.safe.given
    if given and method.name != "safe":
        yield fault(("method", "safe"), ", ".join(given), f"no such section with method {method.name}")
    elif "max_nodes" in given and method.algorithm in ("auto", "safe"):
        key = ("method", "safe", "max_nodes")
        yield fault(key, method.safe.max_nodes, "no such key with SAFE itself, which solves no program")
    counts = method.safe.extra_error_from
    if counts is not None and list(counts) != sorted(set(counts)):
        yield fault(("method", "safe", "extra_error_from"), list(counts), "counts that increase")
