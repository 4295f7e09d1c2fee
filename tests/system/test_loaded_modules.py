"""A run loads only the modules of microguard that its specification needs."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from tests.system.command import TIMEOUT, specification

pytestmark = pytest.mark.spark
MOST = 300
#: Rooms of tables, of series and of nominal methods.
OTHERS = ("pipelines.tables", "pipelines.series", "pipelines.audit", "sdc.cta", "sdc.nominal", "sdc.safe")
RUN = """
import json, sys, microguard
code = microguard.main(["protect", sys.argv[1], "--quiet"])
print(json.dumps([code, sorted(name for name in sys.modules if name.startswith("microguard."))]))
"""


def test_a_numeric_protect_loads_nothing_of_tables_series_or_nominal_methods(tmp_path):
    random = np.random.default_rng(1)
    frame = pd.DataFrame({name: random.lognormal(7, 1, 60) for name in ("income", "wealth")})
    variables = "\n".join(f'{name} = {{ role = "quasi_identifier", kind = "numeric" }}' for name in frame)
    path = specification(tmp_path, frame, variables)

    done = subprocess.run(
        [sys.executable, "-c", RUN, str(path)], capture_output=True, text=True, timeout=TIMEOUT
    )

    code, loaded = json.loads(done.stdout.splitlines()[-1])
    assert code == 0, done.stderr
    prefixes = tuple(f"microguard.{room}" for room in OTHERS)
    assert [name for name in loaded if name.startswith(prefixes)] == []
    assert len(loaded) < MOST
