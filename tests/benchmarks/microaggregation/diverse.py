"""Cost of l-diversity: clusters merged after the search, and a search among diverse clusters.

The records are demo persons. Clusters must have two or three diagnoses, or persons of k households. Diagnoses
cost more than households, because the mitigation of the minimality attack applies only to hidden values.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from microguard.pipelines.demo import QUASI_IDENTIFIERS
from microguard.pipelines.synthetic.dataset import generate_persons
from microguard.sdc.clusters.codes import category_codes
from microguard.sdc.clusters.diversity import Diversity, diversify
from microguard.sdc.microaggregation import microaggregate
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.microaggregation.sse import sum_of_squares

from tests.benchmarks.table import Table


def diverse(quick: bool = False) -> Table:
    """Return the loss without diversity, with mergers, with a diverse search, and with mitigation."""
    persons = next(generate_persons(2_500, 2026))
    numbers = [persons[name].to_numpy() for name in QUASI_IDENTIFIERS["numeric"]]
    values = np.nan_to_num(np.column_stack(numbers).astype(float))
    diagnoses, households = (category_codes(persons[name])[:, None] for name in ("diagnosis", "household"))
    rows: list[tuple[object, ...]] = []
    for k in (3, 5):
        records, order = Records.of(values, k)
        asked = {
            "2 diagnoses": Diversity.of(diagnoses, 2, known=True),
            "3 diagnoses": Diversity.of(diagnoses, 3, known=True),
            f"{k} households": Diversity.of(households, k, known=True),
        }
        for name, diversity in asked.items():
            free, merged, searched, concealed, seconds = [], [], [], [], 0.0
            hidden = replace(diversity, known=~diversity.known)
            for seed in range(1 if quick else 5):
                without = microaggregate(values, k, seed=seed)
                clusters = diversify(records.values, without.labels[order], diversity.take(order))
                started = time.process_time()
                among = microaggregate(values, k, seed=seed, diversity=diversity)
                seconds = max(seconds, time.process_time() - started)
                free.append(100 * without.information_loss)
                merged.append(100 * sum_of_squares(records.values, records.weights, clusters) / records.sst)
                searched.append(100 * among.information_loss)
                if "diagnoses" in name:
                    found = microaggregate(values, k, seed=seed, diversity=hidden)
                    concealed.append(100 * found.information_loss)
                assert searched[-1] < merged[-1], (
                    f"{name}, k={k}, seed {seed}: the search has a larger loss than mergers"
                )
            worst = max(concealed, default=None)
            rows.append((k, name, max(free), min(merged), max(searched), worst, seconds))
    return Table(
        "2,500 persons of the demo town, 10 numeric variables, standard, 100 SSE/SST",
        ("k", "in each cluster", "none asked", "merged, best", "searched", "concealed", "most CPU s"),
        rows,
        "The worst of five seeds, of mergers the best. Concealed: where no attacker knows the variable.",
    )
