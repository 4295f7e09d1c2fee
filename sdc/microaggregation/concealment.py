"""What a search sees of records whose clusters must not tell hidden values.

Whoever knows the clustered variables of everybody and the method can ask why clusters were not changed where
a change gains: because one of the new ones would have lacked values. That gives hidden values away, as every
criterion does that is met at least cost (the minimality attack of Wong, Fu, Wang and Pei 2007). So a search
sees blurred coordinates, by which many a change that gains is passed over, and its clusters must be diverse
in decoys, too: the hidden variables dealt out anew, which hinder as many changes as the true ones.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sdc.clusters.diversity import Diversity
from sdc.microaggregation.contents import number_contents
from sdc.microaggregation.records import Records
from sdc.microaggregation.sse import typical_cost

#: Standard deviation of the blur, in that of the coordinates within the clusters.
BLUR = 0.5
#: A uniform number between -1/2 and 1/2 times this has variance 1.
TO_VARIANCE_1 = 12**0.5


def concealed(records: Records, labels: np.ndarray, seed: int) -> Records:
    """The records as a search may see them; the same where no hidden variable is asked for.

    Parameters
    ----------
    labels : (n,) int array
        Clusters 0 to m - 1 that owe nothing to hidden values: what a record costs in them scales its blur.
    seed : int
        Secret: whoever guesses it can undo what is done here.

    Returns
    -------
    Records
        Of the same order, weights and variables. Records of one content stay so.
    """
    diversity = records.diversity
    if diversity is None or len(diversity.hidden) == 0:
        return records
    rng = np.random.default_rng([seed, len(records)])
    n, p = records.values.shape
    deviation = np.sqrt(typical_cost(records.values, np.ones(n), labels) / p)
    blur = BLUR * deviation * TO_VARIANCE_1 * (rng.random((n, p)) - 0.5)
    first, contents = np.unique(number_contents(records.values), return_index=True, return_inverse=True)[1:]
    values = np.ascontiguousarray(records.values + blur[first][contents.ravel()])
    return replace(records, values=values, axis=None, diversity=_with_decoys(diversity, rng))


def _with_decoys(diversity: Diversity, rng: np.random.Generator) -> Diversity:
    """The same asked of decoys, too: the hidden variables, dealt out anew together."""
    hidden = diversity.hidden
    decoys = diversity.codes[rng.permutation(len(diversity))][:, hidden]
    return Diversity(
        np.ascontiguousarray(np.hstack([diversity.codes, decoys])),
        np.concatenate([diversity.least, diversity.least[hidden]]),
        np.concatenate([diversity.known, np.zeros(len(hidden), dtype=bool)]),
    )
