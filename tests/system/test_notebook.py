"""Tests of the example notebook: it protects a polars frame, shows verdicts and publishes."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from microguard.pipelines.audit.release import audit

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "polars_frame.ipynb"


@pytest.mark.spark
@pytest.mark.long
def test_notebook_publishes_a_polars_frame_and_shows_verdicts(tmp_path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("polars")
    kernels = pytest.importorskip("jupyter_client")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(EXAMPLE, as_version=4)
    # the stored notebook has no outputs that could be outdated
    assert not [cell for cell in notebook.cells if cell.get("outputs")]
    manager = kernels.AsyncKernelManager()
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager.kernel_spec.argv = command
    place = {"metadata": {"path": str(tmp_path)}}
    client = nbclient.NotebookClient(notebook, km=manager, timeout=400, resources=place)
    client.execute()
    shown = [
        output.get("data", {}).get("text/html", "") + output.get("text", "")
        for cell in notebook.cells
        for output in cell.get("outputs", ())
    ]
    verdicts = next(each for each in shown if "max_information_loss" in each or "information loss" in each)
    assert "<table" in verdicts
    (smallest,) = re.findall(r"smallest combination (\d+)", "".join(shown))
    assert int(smallest) >= 3
    release_id = json.loads((tmp_path / "lake" / "current.json").read_text())["release_id"]
    found = audit(tmp_path / "lake" / release_id)
    assert found.passed, found.failures()
