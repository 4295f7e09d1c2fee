"""Runs of the specification in child processes; the page to sign is shown, and the release approved or
rejected.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from microguard.pipelines.publication.areas import PAGE
from microguard.pipelines.workbench.commands import Finished
from microguard.pipelines.workbench.guard import REPORTS
from microguard.pipelines.workbench.remedies import remedies
from microguard.pipelines.workbench.widgets import box, button, entry, text
from microguard.pipelines.workbench.workbench import Workbench

RELEASE_ID = re.compile(r"[0-9a-f]{32}")
SHOWN = ("check", "protect", "adjust", "compare", "approve", "reject")
"""Verbs whose results are shown here, newest first."""
WORDS = {
    "check": "Check",
    "protect": "Protect",
    "compare": "Compare all methods",
    "adjust": "Protect the table",
}


class RunView:
    """Buttons for the verbs, the progress of the running verb, and its result."""

    def __init__(self, workbench: Workbench, is_table: bool) -> None:
        self._workbench = workbench
        self._verb = "adjust" if is_table else "protect"
        self._verbs = ("compare", "adjust") if is_table else ("check", "protect")
        self._keys: Any = None

    def build(self) -> None:
        """Create the buttons and containers of the view."""
        with box("div", "row"):
            self._buttons = [
                button(WORDS[verb], partial(self._workbench.run_specification, verb), "main")
                for verb in self._verbs
            ]
            self._stop = button("Stop", self._workbench.stop)
        self._progress = text("p", "", "progress", role="status")
        self._results = box("div")

    def sync(self) -> None:
        """Show the progress; show results when they change."""
        workbench = self._workbench
        running = workbench.running
        for each in self._buttons:
            each.props.set_bool("disabled", running is not None)
        self._stop.props.set_bool("disabled", running is None)
        self._progress.set_text(f"{running.arguments[0]}: {workbench.line}" if running is not None else "")
        keys = [(verb, id(result)) for verb, result in workbench.finished.items()]
        if keys == self._keys:
            return
        self._keys = keys
        self._results.clear()
        with self._results:
            for verb in reversed([each for each in workbench.finished if each in SHOWN]):
                self._result(verb, workbench.finished[verb])

    def _result(self, verb: str, result: Finished) -> None:
        state = "done" if result.exit_code == 0 else f"refused or failed (exit code {result.exit_code})"
        if result.outdated and verb in WORDS:
            state += "; the specification was changed since it started"
        with box("section", "result", aria_label=f"result of {verb}"):
            text("h3", f"{verb}: {state}")
            # not shown here, because the view of the table shows the comparison
            with box("details", open=verb != "compare"):
                text("summary", f"What {verb} printed")
                css = "wide" if verb == "compare" else ""
                text("pre", result.text, css, tabindex="0", role="group", aria_label=f"what {verb} printed")
            if not result.outdated:
                remedies(self._workbench, result.failures, "Refused or foretold")
            release = str(result.content.get("release_id", ""))
            if verb == self._verb and RELEASE_ID.fullmatch(release):
                page_link(self._workbench, release)
                if "waiting" in result.content:
                    decide(self._workbench, str(result.content["waiting"]), release)


def page_link(workbench: Workbench, release: str) -> None:
    """Create a link to the page of a release; if the evidence is in an object store, show only its name."""
    if workbench.evidence() is None:
        text("p", f"The page to sign is {PAGE} of release {release} in the evidence area.")
        return
    text(
        "a",
        "The page to sign: risk, loss and limits of this release",
        href=f"{REPORTS}{release}",
        target="_blank",
    )


def decide(
    workbench: Workbench, place: str, release: str, then: Callable[[], Awaitable[None]] | None = None
) -> None:
    """Offer to approve or reject a release that is pending approval."""
    given = {"by": "", "note": ""}

    async def act(verb: str) -> None:
        if not given["by"].strip():
            workbench.changed("Write the name of the person who decides; it is recorded.")
            return
        await workbench.run(verb, place, f"--by={given['by'].strip()}", f"--note={given['note'].strip()}")
        if then is not None:
            await then()

    with box("div", "row settings"):
        with box("label"):
            text("span", "who decides")
            entry(
                f"who decides on {release}",
                "",
                lambda value: given.__setitem__("by", value),
                autocomplete="name",
            )
        with box("label"):
            text("span", "reason")
            entry(f"reason for the decision on {release}", "", lambda value: given.__setitem__("note", value))
        button("Approve and publish", lambda: act("approve"), "main")
        button("Reject", lambda: act("reject"))
