"""The workbench of one file: its specification, its measures, and the running verb."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from microguard.pipelines.workbench.commands import Command, Finished
from microguard.pipelines.workbench.data import Data
from microguard.pipelines.workbench.files import Files
from microguard.pipelines.workbench.specification_text import SpecificationText
from microguard.schemas.errors import MicroguardError
from microguard.schemas.specification.model import Specification
from microguard.sdc.errors import SdcError

LEDGER = ("pending", "history")
"""Verbs that read the ledger; every other one but check and compare may change it."""
Measure = Callable[[Specification, Callable[[Any], None]], Any]


class Workbench:
    """The state that all pages of a workbench show.

    Parameters
    ----------
    text : SpecificationText
    files : Files
        The input.
    measure : callable
        Returns the figures of a specification; it may show preliminary figures with its second argument.
    data : Data or None
        The records; None for a table.

    Attributes
    ----------
    preview : Preview, TablePreview or None
        The last figures that could be measured.
    fault : str
        Why the current specification has no figures.
    measuring : bool
    running : Command or None
    line : str
        The last line of progress of the running verb.
    finished : dict of verb to Finished
        Results since the last change of the specification.
    last_message : str
        The last action, for a screen reader.
    """

    def __init__(
        self, text: SpecificationText, files: Files, measure: Measure, data: Data | None = None
    ) -> None:
        self.text, self.files, self.data = text, files, data
        self._measure = measure
        self.preview: Any = None
        self.fault = ""
        self.measuring = False
        self.running: Command | None = None
        self._last: Command | None = None
        self.line = ""
        self.finished: dict[str, Finished] = {}
        self.last_message = ""
        self._shown: list[Callable[[], None]] = []
        self._version = 0

    def on_change(self, show: Callable[[], None]) -> Callable[[], None]:
        """Call `show` after every change; return a function that ends this subscription."""
        self._shown.append(show)
        return lambda: self._shown.remove(show)

    def changed(self, message: str = "") -> None:
        """Show the state on all pages."""
        self.last_message = message or self.last_message
        for show in list(self._shown):
            show()

    def specification(self) -> Specification | None:
        """Return the specification; if it is faulty, state the fault and return None."""
        try:
            return self.text.specification()
        except MicroguardError as error:
            self.fault = str(error)
            return None

    def edit(self, change: Callable[[], None], message: str = "") -> None:
        """Change the specification and measure it again."""
        try:
            change()
        except MicroguardError as error:
            self.changed(str(error))
            return
        self.finished.clear()
        self.measure(message or (self.text.changes[-1] if self.text.changes else ""))

    def set(self, done: str, *keys: tuple[tuple[str, ...], Any]) -> None:
        """Change keys of the specification; None removes a key."""
        self.edit(lambda: self.text.set(done, *keys))

    def measure(self, message: str = "") -> None:
        """Measure the specification in the background."""
        self._version += 1
        specification = self.specification()
        if specification is not None:
            self.fault = ""
            if not self.measuring:
                self.measuring = True
                asyncio.get_running_loop().create_task(self._measured())
        self.changed(message)

    async def _measured(self) -> None:
        """Repeat the measurement until the figures are those of the last change."""
        loop = asyncio.get_running_loop()
        version = -1
        while version != self._version:
            version, specification = self._version, self.specification()
            if specification is None:
                break

            def show(found: Any, of: int = version) -> None:
                loop.call_soon_threadsafe(self._show_preview, found, of)

            try:
                found = await asyncio.to_thread(self._measure, specification, show)
                self._show_preview(found, version)
            except (MicroguardError, SdcError) as error:
                self.fault = str(error)
            except Exception as error:  # the error text could contain a value of a record
                self.fault = f"The figures could not be computed: an unexpected {type(error).__name__}."
        self.measuring = False
        self.changed()

    def _show_preview(self, found: Any, version: int) -> None:
        if version == self._version:
            self.preview, self.fault = found, ""
            self.changed()

    async def check_source(self, read: bool = True) -> bool:
        """Return whether the input file is unchanged since it was read; notify the user if not (see
        `Files.is_replaced`).
        """
        if not await asyncio.to_thread(self.files.is_replaced, read):
            return True
        self.changed(
            "The file was replaced or changed since it was read here. No command was run, and the figures "
            "are of the previous file. Start the workbench again."
        )
        return False

    def save(self) -> bool:
        """Write the specification to its file; return whether it was written."""
        try:
            self.text.save()
        except MicroguardError as error:
            self.changed(str(error))
            return False
        self.changed(f"Saved as {self.text.path.name}.")
        return True

    async def run(self, verb: str, *arguments: str) -> Finished | None:
        """Run a verb in a child process; return its result, or None if it was not started."""
        if self.running is not None:
            self.changed(f"{self.running.arguments[0]} is still running: wait for it, or stop it.")
            return None
        text = self.text.text
        self.running = self._last = command = Command([verb, *arguments], self.text.path.absolute().parent)
        self.line = "starting"
        self.changed(f"{verb} has started.")
        try:
            result = await command.run(self._show_line)
        finally:
            self.running = None
        if self.text.text != text:
            result = replace(result, outdated=True)
        if verb not in (*LEDGER, "check", "compare"):
            for each in LEDGER:  # the figures that were read are no longer valid
                self.finished.pop(each, None)
        self.finished[verb] = result
        self.changed(f"{verb} has ended: {'done' if result.exit_code == 0 else 'refused or failed'}.")
        return result

    async def run_saved(self, verb: str) -> Finished | None:
        """Run a read-only verb on the saved specification; write nothing."""
        if not self.text.is_saved:
            self.changed(f"Save {self.text.path.name} first: {verb} reads the saved specification.")
            return None
        return await self.run(verb, str(self.text.path.absolute()))

    async def run_specification(self, verb: str) -> Finished | None:
        """Save the specification, and run a verb on it."""
        if not await self.check_source() or not self.save():
            return None
        return await self.run(verb, str(self.text.path.absolute()))

    def _show_line(self, line: str) -> None:
        if line:
            self.line = line
            self.changed()

    def stop(self) -> None:
        """Interrupt the running verb."""
        if self.running is not None:
            self.running.stop()

    async def close(self) -> None:
        """Interrupt the running verb and wait until it has ended, even if no caller waits for its result."""
        if self._last is not None:
            await self._last.end()

    def evidence(self) -> Path | None:
        """Return the evidence folder of the specification; None if it is an object store or faulty."""
        specification = self.specification()
        if specification is None or "://" in specification.evidence_area:
            return None
        return Path(specification.evidence_area)
