"""Releases of the specification: pending and published ones, the holder of the lock, and withdrawal."""

from __future__ import annotations

import asyncio
from typing import Any

from microguard.pipelines.workbench.lock_holder import Holder, holder_of
from microguard.pipelines.workbench.pictures import history_picture
from microguard.pipelines.workbench.run_view import RELEASE_ID, decide, page_link
from microguard.pipelines.workbench.widgets import box, button, picture, select, table, text
from microguard.pipelines.workbench.workbench import Workbench
from nicegui import ui

LOOK_EVERY = 3.0
"""Seconds between two checks of the lock of the evidence area."""


class ReleasesView:
    """List of releases with a plot of their counts, and the actions that each release allows."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._shown: Any = None
        self._withdraw = ""

    def build(self) -> None:
        """Create the containers of the view."""
        text(
            "p",
            "Releases are read from the ledger of the evidence area that the specification names.",
            "soft",
        )
        self._lock = text("p", "", "held", role="status")
        with box("div", "row"):
            self._look = button("Look up releases", self._look_up)
        self._pending = box("div")
        self._history = box("div")
        self._consequences = box("div")
        ui.timer(LOOK_EVERY, self._show_lock)

    async def _look_up(self) -> None:
        """Read the ledger by the verbs pending and history."""
        if await self._workbench.run_saved("pending") is not None:
            await self._workbench.run_saved("history")

    async def _show_lock(self) -> None:
        holder = await asyncio.to_thread(self._holder)
        self._lock.set_text("" if holder is None else holder.sentence)
        self._lock.set_visibility(holder is not None)

    def _holder(self) -> Holder | None:
        evidence = self._workbench.evidence()
        return None if evidence is None else holder_of(evidence)

    def sync(self) -> None:
        """Show the ledger as it was last read."""
        workbench = self._workbench
        self._look.props.set_bool("disabled", workbench.running is not None)
        results = [workbench.finished.get(verb) for verb in ("pending", "history", "withdraw")]
        if [id(each) for each in results] == self._shown:
            return
        self._shown = [id(each) for each in results]
        waiting, history, withdrawn = results
        for container in (self._pending, self._history, self._consequences):
            container.clear()
        with self._pending:
            for result in (waiting, history):
                if result is not None and result.exit_code:
                    text("p", result.text, "fault")
            for row in waiting.content.get("pending", []) if waiting is not None else []:
                with box("section", aria_label=f"release {row['release_id']} waits"):
                    text("h3", f"Pending approval since {row['since']}")
                    page_link(workbench, row["release_id"])
                    decide(workbench, row["evidence"], row["release_id"], self._look_up)
            if waiting is not None and not waiting.exit_code and not waiting.content.get("pending"):
                text("p", "No release is pending approval.")
        if history is not None and not history.exit_code:
            with self._history:
                self._show_history(history.content.get("releases", []))
        if withdrawn is not None:
            with self._consequences:
                text("p", withdrawn.text, "fault" if withdrawn.exit_code else "")

    def _show_history(self, rows: list[dict[str, Any]]) -> None:
        text("h3", "Releases so far")
        if not rows:
            text("p", "Nothing was published yet.")
            return
        heads = [name for name in rows[0] if name != "release"]
        table(
            "Releases, oldest first",
            ["release", *heads],
            [
                [row["release"][:8], *("-" if row[name] is None else str(row[name]) for name in heads)]
                for row in rows
            ],
        )
        counted = [name for name in rows[0] if any(isinstance(row[name], int) for row in rows)]
        if len(rows) > 1 and counted:
            text("p", _changes(rows, counted))
            picture(history_picture(rows, counted), "Counts of each release, as in the table above")
        public = [
            row["release"]
            for row in rows
            if row["state"] == "stands" and RELEASE_ID.fullmatch(row["release"])
        ]
        for release in public[-1:]:
            page_link(self._workbench, release)
        if public:
            self._withdraw = public[-1]
            with box("div", "row settings"):
                with box("label"):
                    text("span", "release to withdraw")
                    select(
                        "release to withdraw",
                        {each: each[:8] for each in reversed(public)},
                        public[-1],
                        self._choose,
                    )
                button("Show what withdrawal means", lambda: self._show_consequences(public))

    def _choose(self, release: str) -> None:
        self._withdraw = release
        self._consequences.clear()

    def _show_consequences(self, public: list[str]) -> None:
        """Show the effects of a withdrawal before it can be confirmed."""
        release, evidence = self._withdraw, self._workbench.evidence()
        others = [each for each in public if each != release]
        successor = others[-1][:8] if others else ""
        is_current = release == public[-1]
        self._consequences.clear()
        with self._consequences, box("section", "held", aria_label="consequences of the withdrawal"):
            text("h3", f"Withdrawal of {release[:8]}")
            with box("ul"):
                text("li", "Its files are removed from the public area. This cannot be undone.")
                if is_current and successor:
                    text(
                        "li",
                        (f"It is the newest release: current.json will direct readers to {successor} again."),
                    )
                elif is_current:
                    text("li", "It is the newest release: readers of current.json will find no release.")
                else:
                    text("li", "It is not the newest release: current.json remains unchanged.")
                text(
                    "li",
                    (
                        "Copies made by readers cannot be withdrawn; audits continue to count the release "
                        "as known."
                    ),
                )
                text(
                    "li",
                    ("Its evidence remains, and the ledger records that it was published and withdrawn."),
                )
            place = release if evidence is None else str(evidence / release)
            button("Withdraw it", lambda: self._withdraw_it(place), "main")

    async def _withdraw_it(self, place: str) -> None:
        await self._workbench.run("withdraw", place)
        await self._look_up()


def _changes(rows: list[dict[str, Any]], counted: list[str]) -> str:
    """Return the changes between the last two releases."""
    before, last = rows[-2:]
    changed = [
        f"{name} {before[name]:,} to {last[name]:,}"
        for name in counted
        if isinstance(before[name], int) and isinstance(last[name], int) and before[name] != last[name]
    ]
    return f"Changed since the previous release: {', '.join(changed) or 'no count'}."
