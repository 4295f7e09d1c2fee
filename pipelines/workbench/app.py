"""Pages of the workbench, and the server that answers one user on the loopback address."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from fastapi.responses import FileResponse, PlainTextResponse, Response
from microguard.pipelines.publication.areas import PAGE
from microguard.pipelines.workbench.columns_view import ColumnsView
from microguard.pipelines.workbench.figures_view import FiguresView
from microguard.pipelines.workbench.groups_view import GroupsView
from microguard.pipelines.workbench.guard import ADDRESS, REPORTS, Guard
from microguard.pipelines.workbench.peer_process import Peers
from microguard.pipelines.workbench.releases_view import ReleasesView
from microguard.pipelines.workbench.run_view import RELEASE_ID, RunView
from microguard.pipelines.workbench.settings_view import SettingsView
from microguard.pipelines.workbench.table_view import TableView
from microguard.pipelines.workbench.variable_view import VariableView
from microguard.pipelines.workbench.widgets import box, text
from microguard.pipelines.workbench.workbench import Workbench
from nicegui import app as nicegui_app
from nicegui import ui
from nicegui.element import Element

STYLE = (Path(__file__).parent / "workbench.css").read_text(encoding="utf-8")
LOOK_EVERY = 10.0
"""Seconds between two checks whether the file was replaced."""
LONGEST_MESSAGE = 1 << 20
"""Maximum number of bytes in one message from a browser."""


def build_app(workbench: Workbench) -> FastAPI:
    """Return the application without its access guard."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)

    @app.get(f"{REPORTS}{{release}}")
    def release_page(release: str) -> Response:
        evidence = workbench.evidence()
        if evidence is None or not RELEASE_ID.fullmatch(release):
            return PlainTextResponse("There is no such page.", 404)
        page = evidence / release / PAGE
        if not page.is_file():
            return PlainTextResponse("There is no such page.", 404)
        return FileResponse(page, media_type="text/html", headers={"cache-control": "no-store"})

    @ui.page("/", title="microguard workbench", response_timeout=30.0)
    def page() -> None:
        _page(workbench)

    nicegui_app.on_exception(
        lambda error: workbench.changed(f"Failed: an unexpected {type(error).__name__}.")
    )
    ui.run_with(
        app,
        language="en-US",
        favicon="\N{SHIELD}",
        tailwind=False,
        show_welcome_message=False,
        cache_control_directives="private, max-age=3600",
    )
    return app


def _page(workbench: Workbench) -> None:
    """Build the page for one browser window."""
    ui.add_css(STYLE)
    ui.query(".nicegui-content").classes(replace="page")
    is_table = workbench.data is None
    settings, run, releases = SettingsView(workbench), RunView(workbench, is_table), ReleasesView(workbench)
    text("a", "Skip to the figures", "skip", href="#figures")
    with box("header"):
        text("h1", "microguard workbench")
        text("p", _source(workbench), "soft")
    with box("div", "bar", role="region", aria_label="changes"):
        settings.build_buttons()
        said = text("p", "", "said", role="status", aria_live="polite")
    settings.build_history()
    with box("main"):
        with _section("Release", "release"):
            settings.build(of_records=not is_table)
        views = _table(workbench, run) if is_table else _records(workbench, run)
        with _section("Releases", "releases"):
            releases.build()

    def sync() -> None:
        said.set_text(workbench.last_message)
        for view in (settings, *views, run, releases):
            view.sync()

    _keep_in_step(workbench, sync)


def _records(workbench: Workbench, run: RunView) -> list[Any]:
    """Build the sections for a file of records; return their views."""
    figures, variable, columns = FiguresView(workbench), VariableView(workbench), ColumnsView(workbench)
    groups = GroupsView(workbench)
    with box("div", "pair"):
        with _section("Columns", "columns"):
            columns.build()
            groups.build()
        with box("div"):
            with _section("Risk and loss", "figures"):
                figures.build()
            with _section("Before and after", "pictures"):
                variable.build()
    with _section("Check and run", "run"):
        run.build()
    return [columns, groups, figures, variable]


def _table(workbench: Workbench, run: RunView) -> list[Any]:
    """Build the sections for a table; return their views."""
    cells = TableView(workbench)
    with _section("Rules and method", "rules"):
        cells.build_rules()
    with _section("Cells", "figures"):
        cells.build_cells()
    with _section("Compare and run", "run"):
        run.build()
        cells.build_methods()
    return [cells]


def _keep_in_step(workbench: Workbench, sync: Callable[[], None]) -> None:
    """Call `sync` after each change until the window is closed; check regularly whether the input file was
    replaced.
    """
    client = ui.context.client
    body = ui.context.slot.parent

    def show() -> None:
        with body:
            sync()

    stop = workbench.on_change(show)
    client.on_delete(stop)
    if workbench.preview is None:
        workbench.measure()
    else:
        sync()
    ui.timer(LOOK_EVERY, partial(workbench.check_source, False))


def _source(workbench: Workbench) -> str:
    if workbench.data is None:
        return workbench.text.path.name
    return f"{workbench.data.profile.source.path.name}: {workbench.data.profile.records:,} records"


def _section(title: str, name: str) -> Element:
    """Create a section with its heading, as a context manager for its content."""
    section = box("section", aria_labelledby=name)
    with section:
        text("h2", title, id=name, tabindex="-1")
    return section


class _QuietServer(uvicorn.Server):
    """Server that ends normally at a signal, so that the command returns a result."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the handling of signals to the event loop."""
        yield

    def end(self) -> None:
        """Stop serving."""
        self.should_exit = True


def listen(port: int) -> socket.socket:
    """Return a socket that listens on a port of the loopback address (0: any free port).

    Raises
    ------
    OSError
        If the port cannot be used.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((ADDRESS, port))
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener


class Server:
    """Server of a workbench.

    Parameters
    ----------
    app : FastAPI
    listener : socket
        From `listen`.

    Attributes
    ----------
    guard : Guard
    """

    def __init__(self, app: FastAPI, listener: socket.socket) -> None:
        self._socket = listener
        port = listener.getsockname()[1]
        self.guard = Guard(app, port, Peers(port))
        # not logged, because a traceback could contain a value
        logging.getLogger("nicegui").setLevel(logging.CRITICAL)
        configuration: Any = uvicorn.Config(
            self.guard, log_config=None, access_log=False, server_header=False, date_header=False,
            ws_max_size=LONGEST_MESSAGE, timeout_graceful_shutdown=2, lifespan="on",
        )  # fmt: skip
        self._server = _QuietServer(configuration)

    def run(self, started: Callable[[], None], close: Callable[[], Awaitable[None]]) -> None:
        """Serve until SIGINT or SIGTERM; call `started` when the server is ready, and wait for `close` at the
        end.
        """

        async def serve() -> None:
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, self._server.end)
            task = asyncio.create_task(self._server.serve([self._socket]))
            while not self._server.started and not task.done():
                await asyncio.sleep(0.05)
            started()
            try:
                await task
            finally:  # called before asyncio cancels the tasks that wait for the command
                await close()

        asyncio.run(serve())
