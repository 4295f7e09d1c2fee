"""The scenarios of Cost 2023, section 6.2.1: ten instances each, with fixed seeds."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tests.reference import ADULT, reference_file

#: Table 6.4: values per variable of the synthetic data.
SYNTHETIC_SIZES = (2, 5, 6, 7, 7)
#: Share of confidentiality problems by scenario; None if it is sampled from Adult.
SCENARIOS: dict[str, float | None] = {
    "adult200m5": None,
    "200m5_2percent": 0.02,
    "200m5_20percent": 0.2,
    "200m5_100percent": 1.0,
}


def adult(variables: int = 8) -> pd.DataFrame:
    """Return the 30,162 records of Adult without missing values, with its first nominal variables."""
    everything = pd.read_csv(reference_file("adult.csv"), na_values="?", skipinitialspace=True)
    complete = everything.dropna().reset_index(drop=True)
    return complete[list(ADULT[:variables])]


def instance(scenario: str, number: int, *, records: int = 200, k: int = 3) -> pd.DataFrame:
    """Draw instance `number` (0 to 9) of a scenario."""
    share = SCENARIOS[scenario]
    if share is None:
        return adult(5).sample(records, random_state=number).reset_index(drop=True)
    return synthetic(records, share, k, np.random.default_rng([number, round(100 * share)]))


def synthetic(
    records: int, share: float, k: int, rng: np.random.Generator, further: tuple[int, ...] = ()
) -> pd.DataFrame:
    """Generate synthetic data in which the share of confidentiality problems is prescribed.

    `further` are the numbers of values of more variables than Table 6.4 has.

    Combinations with k to 0.15 n + 1 records are drawn first, until they have floor((1 - p) n) records. Then
    distinct combinations with 1 to k - 1 records are drawn.
    """
    sizes = (*SYNTHETIC_SIZES, *further)
    cells = rng.permutation(int(np.prod(sizes)))
    counts: list[int] = []
    safe = int((1 - share) * records)
    while (left := safe - sum(counts)) > 0:
        drawn = int(rng.integers(k, int(0.15 * records) + 2))
        # the last draw must not leave fewer than k records
        counts.append(left if left - drawn < k else drawn)
    while (left := records - sum(counts)) > 0:
        counts.append(min(left, int(rng.integers(1, k))))
    chosen = np.repeat(cells[: len(counts)], counts)
    codes = np.column_stack(np.unravel_index(chosen, sizes))
    return pd.DataFrame(codes[rng.permutation(records)], columns=[f"v{j + 1}" for j in range(len(sizes))])
