"""Start a workbench in a child process and open a Chromium window on it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.browser import browser

SECONDS = 400
HEIGHT = 900
_HERE = Path(__file__).parent
#: Contrast of each text and of the borders of controls with what is behind them (WCAG 2.2, 1.4.3 and 1.4.11).
CONTRAST = (_HERE / "contrast.js").read_text(encoding="utf-8")
#: Controls without a name for a screen reader.
NAMELESS = (_HERE / "nameless.js").read_text(encoding="utf-8")


def require_browser() -> Any:
    """Return the driver of a browser; skip the test with a reason if the driver is missing."""
    pytest.importorskip("nicegui", reason="the extra [workbench] is not installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if browser() is None:
        pytest.skip("no Chromium on this machine")
    return playwright


@contextmanager
def started(folder: Path, named: str, prepared: str = "") -> Iterator[tuple[str, Path]]:
    """Start a workbench in a folder; yield its address and the file with its output.

    `prepared` is a program that starts it instead.
    """
    printed = folder / "printed.txt"
    root = Path(__file__).resolve().parents[3]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "microguard", "start", named, "--no-browser"]
    command = [sys.executable, "-c", prepared, named] if prepared else command
    with open(printed, "w") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=output, text=True
        )
    assert process.stdout is not None
    timer = threading.Timer(SECONDS, process.kill)
    timer.start()
    try:
        line = process.stdout.readline()
        found = re.search(r"http://\S+", line)
        assert found, printed.read_text()
        timer.cancel()
        yield found.group(0), printed
    finally:
        timer.cancel()
        process.terminate()
        rest, _ = process.communicate(timeout=300)
        printed.write_text(line + rest + printed.read_text())


@contextmanager
def window(address: str, width: int = 1280) -> Iterator[Any]:
    """Open a Chromium window; fail the test if a page reports an error or loads from another server."""
    with require_browser().sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=browser(), args=["--no-sandbox"])
        page = chromium.new_context(viewport={"width": width, "height": HEIGHT}).new_page()
        page.set_default_timeout(1000 * SECONDS)
        complaints, servers = [], set()
        page.on("console", lambda each: complaints.append(each.text) if each.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: servers.add("/".join(request.url.split("/")[:3])))
        page.goto(address)
        yield page
        chromium.close()
    assert complaints == []
    own = address.partition("/?")[0]
    assert {each for each in servers if not each.startswith("data:")} <= {own, own.replace("http", "ws")}
