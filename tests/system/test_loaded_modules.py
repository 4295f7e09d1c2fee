"""Tests that a run imports only the modules of microguard that its specification needs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.system.command import specification

pytestmark = pytest.mark.spark
#: Rooms of other products, methods and commands, and what a run of the command never needs.
OTHERS = (
    *(f"pipelines.{room}" for room in ("audit", "drafting", "series", "synthetic", "tables", "workbench")),
    *(f"pipelines.publication.formats.{room}" for room in ("catalog_table", "delta", "iceberg")),
    *("sdc.cta", "sdc.local_suppression", "sdc.nominal", "sdc.perturbation", "sdc.recoding"),
    *("sdc.safe", "sdc.suppression", "sdc.swapping"),
)


def persons(folder: Path) -> Path:
    """Write numeric records and their specification."""
    random = np.random.default_rng(1)
    frame = pd.DataFrame({name: random.lognormal(7, 1, 60) for name in ("income", "wealth")})
    variables = "\n".join(f'{name} = {{ role = "quasi_identifier", kind = "numeric" }}' for name in frame)
    return specification(folder, frame, variables)


def test_numeric_protect_imports_no_module_of_other_methods_products_or_commands(plain_runs):
    _, run = plain_runs["numeric"]
    assert run.code == 0, run.err
    loaded = [name.removeprefix("microguard.") for name in run.loaded if name.startswith("microguard.")]
    assert "pipelines.release" in loaded
    assert [name for name in loaded if name.startswith(OTHERS)] == []
    adapters = {name for name in loaded if name.startswith("pipelines.methods.")}
    assert adapters == {"pipelines.methods.microaggregation"}
