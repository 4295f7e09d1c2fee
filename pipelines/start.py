"""The verb ``start``: open a workbench in the browser for one file, on this machine's loopback address."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from microguard.pipelines.engine.command_result import CommandResult
from microguard.pipelines.engine.extras import require_extras
from microguard.schemas.errors import SpecificationError

if TYPE_CHECKING:
    from microguard.pipelines.workbench.workbench import Workbench

OPEN_PAGE = '<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={address}">'
LARGEST_PORT = 65_535


def start(
    named: str, *, port: str = "0", no_browser: bool = False, show: Callable[[str], None]
) -> CommandResult:
    """Open a workbench for a file or a specification, until it is interrupted (Ctrl-C).

    Parameters
    ----------
    named : str
        A Parquet or CSV file, folder or glob, or a specification (TOML).
    port : str
        Port of the loopback address; "0" selects a free port.
    no_browser : bool
        Whether to print the address without opening a browser.
    show : callable
        Prints the address.

    Raises
    ------
    InputRejected
        If the input cannot be read.
    SpecificationError
        If the specification is faulty or the port is in use.
    """
    require_extras("spark", "report", "workbench")
    from microguard.pipelines.workbench.app import Server, build_app, listen
    from microguard.pipelines.workbench.open_file import open_file

    if not (port.isdecimal() and int(port) <= LARGEST_PORT):
        raise SpecificationError("--port: expected a number from 0 (any that is free) to 65535.")
    try:
        listener = listen(int(port))  # check this before the file is read
    except OSError as error:
        raise SpecificationError(
            f"--port: the port cannot be used ({os.strerror(error.errno or 0)}). Name another port, or none."
        ) from None
    with listener, tempfile.TemporaryDirectory(prefix="microguard-") as private:
        workbench = open_file(named)
        server = Server(build_app(workbench), listener)

        def started() -> None:
            show(
                f"The workbench is at {server.guard.address}\nOpen it in a browser on this machine. Anyone "
                "who has the address can see the file. Ctrl-C ends it."
            )
            if not no_browser:
                threading.Thread(
                    target=_open, args=(server.guard.address, Path(private)), daemon=True
                ).start()

        server.run(started, workbench.close)
    return CommandResult(_ended(workbench), {"specification": str(workbench.text.path)})


def _open(address: str, private: Path) -> None:
    """Open a browser with a private file: all users of a machine can see the arguments of a process.

    The call of a text browser returns only when the user closes it, so the call runs in a separate thread.
    """
    page = private / "open.html"
    page.touch(0o600)
    page.write_text(OPEN_PAGE.format(address=address), encoding="utf-8")
    try:
        found = webbrowser.open(page.as_uri())
    except webbrowser.Error:
        found = False
    if not found:
        print("No browser was found: open the address manually.", file=sys.stderr)


def _ended(workbench: Workbench) -> str:
    path = workbench.text.path
    state = "saved" if workbench.text.is_saved else "not saved"
    return f"The workbench has ended. The specification {path.name} is {state}."
