"""Compare an ordered variable with an unordered variable of equal values: how far protection moves each."""

import numpy as np

SIZES = ["tiny", "small", "middle", "large", "huge"]
#: The order, and the same values as unordered categories.
ORDERED = {
    "size": {"role": "quasi_identifier", "kind": "ordinal", "order": SIZES},
    "grade": {"role": "quasi_identifier", "kind": "nominal"},
}


def with_orders(frame, rng):
    """Return records with a unique note and two equally drawn variables; some sizes are missing."""
    n = len(frame)
    return frame.assign(
        note=[f"n{i}" for i in range(n)],
        size=rng.choice([*SIZES, None], n, p=[0.19] * 5 + [0.05]),
        grade=rng.choice(SIZES, n),
    )


def steps_moved(original, protected):
    """Return the mean number of steps of changed values by variable; the note identifies records."""
    before = original.set_index("note").loc[protected["note"]]
    steps = {}
    for name in ORDERED:
        ranks = [column.map(SIZES.index, na_action="ignore") for column in (before[name], protected[name])]
        moved = np.abs(ranks[0].to_numpy(float) - ranks[1].to_numpy(float))
        steps[name] = moved[moved > 0].mean()
    return steps
