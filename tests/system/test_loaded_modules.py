"""Tests that a run imports only the modules of microguard that its specification needs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.system.command import specification

pytestmark = pytest.mark.spark
MOST = 300
#: Packages of tables, of series and of nominal methods.
OTHERS = ("pipelines.tables", "pipelines.series", "pipelines.audit", "sdc.cta", "sdc.nominal", "sdc.safe")


def persons(folder: Path) -> Path:
    """Write numeric records and their specification."""
    random = np.random.default_rng(1)
    frame = pd.DataFrame({name: random.lognormal(7, 1, 60) for name in ("income", "wealth")})
    variables = "\n".join(f'{name} = {{ role = "quasi_identifier", kind = "numeric" }}' for name in frame)
    return specification(folder, frame, variables)


def test_numeric_protect_imports_no_module_of_tables_series_or_nominal_methods(plain_runs):
    _, run = plain_runs["numeric"]
    assert run.code == 0, run.err
    loaded = [name for name in run.loaded if name.startswith("microguard.")]
    prefixes = tuple(f"microguard.{room}" for room in OTHERS)
    assert "microguard.pipelines.release" in loaded
    assert [name for name in loaded if name.startswith(prefixes)] == []
    assert len(loaded) < MOST
