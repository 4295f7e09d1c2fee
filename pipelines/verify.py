"""Verb ``verify``: audit a published release from its public files."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from microguard.pipelines.audit.release import Audit, Finding, audit
from microguard.pipelines.engine.command_result import CommandResult
from microguard.pipelines.guarantees.original_cells import OriginalCells
from microguard.pipelines.publication.area_identity import AreaNotThere, known_area
from microguard.pipelines.publication.find_release import FoundRelease, find_release
from microguard.pipelines.publication.formats.table_format import catalog_table, stored_delta_table
from microguard.pipelines.publication.ledger import GONE, Ledger, is_in
from microguard.schemas.errors import GateRefused, SpecificationError


def verify(named: str) -> CommandResult:
    """Audit a release and return the findings.

    Parameters
    ----------
    named : str
        A release folder, a public area (its current release), or a specification file.

    Raises
    ------
    SpecificationError
        If the release is not in the public area.
    AreaNotThere
        If this is unknown, because the area of the ledger is missing at its place.
    GateRefused
        If a promise of the manifest does not hold; every failure is named.
    """
    release = find_release(named)
    if not release.public.exists(release.release_id):
        if release.evidence is not None:
            known_area(release.areas())
        raise SpecificationError(
            f"Release {release.release_id} is not in the public area: it was withdrawn, or is pending "
            "approval. Name a published one; `microguard history SPEC` lists them."
        )
    with release.public.reading(release.release_id) as folder:
        result = _audited(folder, release)
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    result = replace(
        result, findings=(*result.findings, *_of_its_table(release, manifest), *_of_its_manifest(release))
    )
    if not result.passed:
        raise GateRefused(
            f"Release {result.release_id} does not fulfil what its manifest promises. "
            + " ".join(f"{failure}." for failure in result.failures())
            + " Withdraw it, and check who can write to the public area."
        )
    lines = [f"Release {result.release_id} fulfils what its manifest promises."]
    lines += [f"  {finding.check}: {finding.detail}" for finding in result.findings]
    lines += _beside_the_ledger(release)
    content = {"release_id": result.release_id, "findings": [asdict(finding) for finding in result.findings]}
    return CommandResult("\n".join(lines), content)


def _beside_the_ledger(release: FoundRelease) -> list[str]:
    """Return a note if a ledger is near but the audited files are outside its public area."""
    if release.evidence is not None:
        try:
            known_area(release.areas())
        except AreaNotThere as error:
            return [f"  These files are not in the area recorded in the ledger. {error}"]
    return []


def _of_its_table(release: FoundRelease, manifest: dict[str, Any]) -> list[Finding]:
    """Check the table of a release in a catalogue (if its ledger is near) or in an object store."""
    if "catalog_table" in manifest:
        entry = None if release.evidence is None else Ledger(release.areas()).status(release.release_id)
        if entry is None or not entry.catalog:
            return []
        faults = catalog_table(entry.catalog, entry.table, release.public).faults(manifest, _ledger(release))
    elif manifest.get("format") == "delta" and release.public.folder is None:
        table = stored_delta_table(release.public)
        if release.release_id not in (*table.committed(), release.public.current()):
            return []  # a later withdrawal removed its version
        faults = table.faults(manifest, _ledger(release), whole=True)
    else:
        return []
    return [Finding("table", not faults, "; ".join(faults) or "it contains the files of the release")]


def _of_its_manifest(release: FoundRelease) -> list[Finding]:
    """Compare the manifest with its copy in the evidence, if the audited area is the ledger's own public
    area.
    """
    if release.evidence is None:
        return []
    areas = release.areas()
    entry = Ledger(areas).status(release.release_id)
    if entry is None or not is_in(entry, areas.public):
        return []
    same = areas.has_its_manifest(release.release_id)
    detail = "as it was published" if same else "it is not the one with which the release was published"
    return [Finding("manifest", same, detail)]


def _ledger(release: FoundRelease) -> dict[str, bool] | None:
    """Return which releases of the ledger stand and were not withdrawn; None unless the area is its own."""
    if release.evidence is None:
        return None
    latest = Ledger(release.areas()).latest()
    entry = latest.get(release.release_id)
    if entry is None or not is_in(entry, release.public):
        return None
    return {each.release_id: each.event not in GONE for each in latest.values()}


def _original(release: FoundRelease, folder: Path) -> OriginalCells | None:
    """Return the cells of a suppressed table before protection, if its evidence is near."""
    manifest = folder / "manifest.json"
    if release.evidence is None or '"suppressed"' not in manifest.read_text(encoding="utf-8"):
        return None
    from microguard.pipelines.tables.suppression.kept_tables import kept_original

    content = json.loads(manifest.read_text(encoding="utf-8"))
    return kept_original(release.areas().record(release.release_id), content)


def _audited(folder: Path, release: FoundRelease) -> Audit:
    ledger = _ledger(release)
    try:
        return audit(
            folder,
            _original(release, folder),
            ledger=ledger,
            with_table=release.public.folder is not None,
        )
    except Exception as error:  # any damage: a release that cannot be audited does not pass
        raise GateRefused(
            f"Release {release.release_id} cannot be audited ({type(error).__name__}): its manifest or "
            "files are damaged, or were not written by microguard. Withdraw it, and check who can write to "
            "the public area."
        ) from error
