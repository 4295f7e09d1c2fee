"""Compute the noise of an amount in plain Python from the rule and files of tau-ARGUS, without microguard."""

from __future__ import annotations

import csv
import math


def read_rows(path):
    """Read a p-table as a mapping of row to its published amounts and bounds of the key."""
    rows: dict[float, list[tuple[float, float, float]]] = {}
    with open(path, newline="") as file:
        for line in csv.DictReader(file, delimiter=";"):
            row = rows.setdefault(float(line["i"]), [])
            row.append((float(line["j"]), float(line["p_int_ub"]), float(line["p"])))
    return rows


def _row_noise(rows, row, key):
    return next(published for published, bound, _ in rows[row] if key < bound) - row


def draw(rows, ratio, key):
    """Return noise divided by the scale, interpolated between two rows."""
    last = max(rows)
    if ratio >= last:
        return _row_noise(rows, last, key)
    below, above = max(r for r in rows if r <= ratio), min(r for r in rows if r > ratio)
    weight = (ratio - below) / (above - below)
    return (1 - weight) * _row_noise(rows, below, key) + weight * _row_noise(rows, above, key)


def separation(small, sigma_1, epsilon):
    last = max(small)
    deviation = math.sqrt(sum((j - last) ** 2 * p for j, _, p in small[last]))
    return deviation / (sigma_1 * math.sqrt(sum(e * e for e in epsilon)))


def perturbed(x, tops, keys, large, small, scaling):
    """Return the published amount of a cell: `scaling` is (sigma 0, sigma 1, x star, q, epsilons)."""
    sigma_0, sigma_1, x_star, q, epsilon = scaling
    z_s = separation(small, sigma_1, epsilon) if small else 0.0

    def flex(z):
        if z < x_star:
            return sigma_1
        return sigma_0 * (
            1 + (sigma_1 * z - sigma_0 * x_star) / (sigma_0 * x_star) * (2 * x_star / (z + x_star)) ** q
        )

    for j, (top, key, factor) in enumerate(zip(tops, keys, epsilon, strict=True)):
        if x == 0 or (j and (top < z_s or top == 0)):
            continue
        delta = top * factor * flex(top) if top >= z_s else 1.0
        if x < delta:
            delta, top = x, x / (factor * sigma_1)
        if top >= z_s:
            x = x + delta * draw(large, x / delta, key)
        elif j == 0:
            x = x + max(draw(small, x, key), -x)
    return x
