"""Compute the maximum-entropy distribution of noise with mean 0 and a given variance."""

from __future__ import annotations

import numpy as np
from microguard.sdc.errors import InvalidParameter, SolverFailed

#: Probabilities below this are set to 0, because a 32-bit key cannot draw them.
_NEVER_DRAWN = 1e-12
#: Tolerance of Newton's method: largest error of the mean and of the variance, relative to their scales.
#: Rounding errors alone are 1e-14.
_TOLERANCE = 1e-12
#: Maximum number of Newton steps, and of halvings of a step. About ten steps are needed.
_HALVINGS, _STEPS = 60, 200


def noise_of_largest_entropy(noise: np.ndarray, variance: float) -> np.ndarray:
    """Return the maximum-entropy probabilities of noise with mean 0 and a given variance, or the nearest
    feasible one.

    Parameters
    ----------
    noise : (values,) distinct whole numbers in ascending order, one of them at most 0 and one at least 0
    variance : float
        If no distribution with mean 0 has this variance, the result has the smallest possible variance (the
        two values next to 0) or the largest possible variance (the outermost values).

    Raises
    ------
    InvalidParameter
        If no distribution has mean 0.

    Notes
    -----
    The density is exp(a d + b d^2 - c). The multipliers a and b minimise the convex dual log sum exp(a d +
    b (d^2 - V)), here by damped Newton steps (Marley and Leaver 2011; Giessing 2016, section 3).
    """
    values = np.asarray(noise, float)
    if not len(values) or values[0] > 0 or values[-1] < 0:
        raise InvalidParameter(
            "noise: expected positive and negative values, because its mean is 0; found values of one sign "
            "only"
        )
    below, above = values[values <= 0].max(), values[values >= 0].min()
    if variance <= -below * above:
        return _between(values, below, above)
    if variance >= -values[0] * values[-1]:
        return _between(values, values[0], values[-1])
    moments = np.vstack([values / values[-1], (values**2 - variance) / variance])
    multipliers = np.zeros(2)
    for _ in range(_STEPS):
        odds, level = _density(multipliers @ moments)
        gradient = moments @ odds
        if np.abs(gradient).max() < _TOLERANCE:
            odds[odds < _NEVER_DRAWN] = 0.0
            return np.asarray(odds / odds.sum())
        centred = moments - gradient[:, None]
        step = np.linalg.solve((centred * odds) @ centred.T, gradient)
        for _ in range(_HALVINGS):
            if _density((multipliers - step) @ moments)[1] <= level + _TOLERANCE:
                break
            step = step / 2
        multipliers = multipliers - step
    raise SolverFailed(
        f"noise with variance {variance}: found no probabilities in {_STEPS} steps; choose another variance"
    )


def _between(noise: np.ndarray, below: float, above: float) -> np.ndarray:
    """Return the unique probabilities of two values for which the mean is 0."""
    odds = np.zeros(len(noise))
    if below == above:
        odds[noise == 0] = 1.0
    else:
        odds[noise == below] = above / (above - below)
        odds[noise == above] = -below / (above - below)
    return odds


def _density(exponent: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the normalised exponentials, and the logarithm of their sum."""
    highest = float(exponent.max())
    weights = np.exp(exponent - highest)
    total = float(weights.sum())
    return weights / total, highest + float(np.log(total))
