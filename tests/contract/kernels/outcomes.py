"""Results and side effects of a call of a kernel."""

from __future__ import annotations

import numba
import numpy as np

from tests.contract.kernels.variations import varied

#: Kernels that return a work array with arbitrary initial content: only types and shapes are compared.
UNINITIALISED = {
    "microaggregation.exact_pricing.candidate_lists.new_lists",
    "microaggregation.heuristics.mdav.new_free",
    "microaggregation.local_search.moves.scratch",
    "microaggregation.local_search.neighbours._new_leaf",
    "microaggregation.principal_component.new_sample",
    "nominal.partitioning.local_search._construct",
    "nominal.partitioning.search_state.new_state",
}


@numba.njit
def _seed_all():
    """Seed numba's generator, which belongs to the process and from which some kernels draw."""
    np.random.seed(0)


def outcome(name, kernel, arguments):
    """Return the result of a call and the contents of its arguments, or the type of its error."""
    _seed_all()
    try:
        result = kernel(*arguments)
        return varied(result, np.zeros_like) if name in UNINITIALISED else result, arguments
    except Exception as error:
        return type(error)
