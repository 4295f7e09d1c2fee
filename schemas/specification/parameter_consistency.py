"""Parameters of one algorithm where another is asked for, or that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from microguard.schemas.methods import SAFE, TWO_STEP
from microguard.schemas.specification.faults import Fault, fault
from microguard.schemas.specification.model import Specification

#: Sections of `[method]`, and the algorithms that heed them.
HEEDED: Mapping[str, tuple[str, ...]] = {
    "vmdav": ("vmdav",),
    "k_ward": ("k-ward", "k-ward-projected"),
    "column_generation": ("column-generation",),
    "genetic": ("genetic",),
    "two_step": TWO_STEP,
    "chi_exact": ("chi-exact",),
    "safe": ("auto", *SAFE),
}


def parameter_faults(spec: Specification) -> Iterator[Fault]:
    """Faults of the sections of `[method]` that hold parameters of an algorithm."""
    method = spec.method
    for name, heeding in HEEDED.items():
        section = getattr(method, name)
        if section is None or not section.given:
            continue
        given = ", ".join(section.given)
        if (name == "safe") != (method.name == "safe"):
            yield fault(("method", name), given, f"no such section with method {method.name}")
        elif method.algorithm not in heeding:
            shown = "own-..." if heeding is TWO_STEP else " or ".join(heeding)
            allowed = f"no such section with algorithm {method.algorithm}, but with {shown}"
            yield fault(("method", name), given, allowed)
    yield from _of_k_ward(spec)
    if method.column_generation.given and method.effort == "exact":
        key = ("method", "column_generation", "rounding")
        allowed = "no such key with effort exact, which rounds nothing"
        yield fault(key, method.column_generation.rounding, allowed)
    yield from _of_safe(spec)


def _of_k_ward(spec: Specification) -> Iterator[Fault]:
    ranking, key = spec.method.k_ward.ranking, ("method", "k_ward", "ranking")
    if ranking == "maximum-distance" and spec.method.algorithm == "k-ward-projected":
        yield fault(key, ranking, "fpc, sz, pv with algorithm k-ward-projected")
    if ranking in ("sz", "pv") and spec.nominal:
        yield fault(key, ranking, "maximum-distance, fpc, as not all quasi-identifiers are numeric")


def _of_safe(spec: Specification) -> Iterator[Fault]:
    safe = spec.method.safe
    if safe.max_nodes is not None and spec.method.algorithm in ("auto", "safe"):
        key = ("method", "safe", "max_nodes")
        yield fault(key, safe.max_nodes, "no such key with SAFE itself, which solves no program")
    counts = safe.extra_error_from
    if counts is not None and list(counts) != sorted(set(counts)):
        yield fault(("method", "safe", "extra_error_from"), list(counts), "counts that increase")
