"""Drafts of office files: the share of correct roles, and whether each draft passes its check."""

from __future__ import annotations

import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

from microguard.pipelines.draft import draft
from microguard.pipelines.engine.jvm import InputSize
from microguard.pipelines.engine.session import open_session
from microguard.pipelines.intake.accept import accept_input
from microguard.pipelines.intake.read import read
from microguard.pipelines.intake.validate import validate
from microguard.schemas.errors import MicroguardError
from microguard.schemas.specification.read import build_specification

from tests.benchmarks.table import Table
from tests.pipelines.drafting.office_files import KEYS, office_files

LEAST_RIGHT = 0.9
"""Minimum share of columns with the true role in each file."""


def run(quick: bool = False) -> Iterator[Table]:
    """Draft and check the files; quick: without the files with many columns."""
    files = [file for file in office_files() if not (quick and "wide" in file.name)]
    rows, wrong, right, columns = [], [], 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = open_session("local[2]", folder, size=InputSize.SMALL)
        try:
            for file in files:
                path = file.write(folder)
                start = time.process_time()
                content = tomllib.loads(draft(str(path)).summary())
                seconds = time.process_time() - start
                roles_drafted = {
                    each: line.get("kind", "")
                    if line["role"] in ("quasi_identifier", "other")
                    else line["role"]
                    for each, line in content["variables"].items()
                }
                exposed = [
                    each
                    for each, true in file.truth.items()
                    if true == "key" and roles_drafted[each] not in KEYS
                ]
                assert not exposed, f"{file.name}: {exposed} would be published"
                specification = build_specification(content, folder)
                try:
                    screened = validate(read(spark, specification), specification)
                    accept_input(screened, specification, folder / "evidence")
                    passes = "yes"
                except MicroguardError as error:
                    passes = f"no: {error}"
                spark.catalog.clearCache()
                right, columns = right + len(file.right(roles_drafted)), columns + len(file.truth)
                share = len(file.right(roles_drafted)) / len(file.truth)
                if share < LEAST_RIGHT:
                    wrong.append(f"{file.name}: {share:.3f}")
                rows.append((file.name, len(file.truth), f"{share:.3f}", passes, f"{seconds:.1f}"))
        finally:
            spark.stop()
    assert not wrong, f"fewer than {LEAST_RIGHT:.0%} of the roles are right: {wrong}"
    assert all(row[3] == "yes" for row in rows), [row[0] for row in rows if row[3] != "yes"]
    rows.append(("all", columns, f"{right / columns:.3f}", "yes", ""))
    yield Table(
        "Drafts of office files", ("file", "columns", "roles right", "passes its check", "CPU s"), rows
    )
