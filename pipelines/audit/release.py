"""Audit of a published release with a second engine (DuckDB), using only its public files.

DuckDB counts each guarantee on the published files, and every statement of the manifest is compared with the
files. The audit uses no code of the methods and no Spark, and it reads only files that every reader of the
public area can read.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
from microguard.pipelines.audit import csv_file, description, tau_argus
from microguard.pipelines.audit.footers import has_foreign_metadata, stale_dictionaries, wrong_footers
from microguard.pipelines.audit.partitions import (
    MICRODATA,
    partition_faults,
    partition_field,
    record_files,
    show_records,
)
from microguard.pipelines.audit.public_records import PublicRecords
from microguard.pipelines.guarantees.guarantee import Count, Guarantee, unmet
from microguard.pipelines.guarantees.original_cells import OriginalCells
from microguard.pipelines.guarantees.queries import number, quiet_engine, show
from microguard.pipelines.guarantees.registry import UnknownGuarantee, record_guarantees, table_guarantee
from microguard.pipelines.guarantees.table_files import table_files, wrong_columns

FREQUENCY = "frequency"
#: Module that audits the tables of each format. Its library is imported only if a release has this format.
_TABLE_FORMATS = {
    "delta": "microguard.pipelines.audit.delta",
    "iceberg": "microguard.pipelines.audit.iceberg",
}


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    check: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class Audit:
    """The findings of an audit of one release.

    Attributes
    ----------
    release_id : str
    findings : tuple of Finding
    """

    release_id: str
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Return whether every check passed."""
        return all(finding.passed for finding in self.findings)

    def failures(self) -> list[str]:
        """Return the failed checks, one sentence each."""
        return [f"{finding.check}: {finding.detail}" for finding in self.findings if not finding.passed]


def audit(
    folder: Path,
    original: OriginalCells | None = None,
    *,
    ledger: Mapping[str, bool] | None = None,
    with_table: bool = True,
) -> Audit:
    """Audit the release in a public folder.

    Parameters
    ----------
    folder : Path
        ``<publish.path>/<release_id>``, with its ``manifest.json``.
    original : OriginalCells, optional
        Cells of a table before protection, if the agency audits. The guarantees about these cells are then
        counted too.
    ledger : mapping of str to bool, optional
        Releases of the ledger, and whether they stand, if the agency audits: the table of a format must
        name none that was withdrawn.
    with_table : bool
        Whether the table of the format is next to the folder.
    """
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    findings = [_identity(folder, manifest), _checksums(folder, manifest), _files(manifest)]
    if all(finding.passed for finding in findings):
        if manifest.get("content") == "table":
            findings += [
                *_footers(folder),
                *_described(folder, manifest),
                *_table(folder, manifest, original),
            ]
            return Audit(str(manifest["release_id"]), tuple(findings))
        findings += [*_described(folder, manifest)]
        findings += [_columns(folder, manifest), *_footers(folder)]
    if all(finding.passed for finding in findings):
        with quiet_engine() as engine:
            names = [column["name"] for column in manifest["columns"]]
            keys = [_key(names, name) for name in names]
            show_records(engine, folder, manifest, keys)
            findings.append(_records(engine, manifest))
            findings += _partitions(engine, folder, manifest, keys)
            findings += _promises(engine, manifest, dict(zip(names, keys, strict=True)))
            findings += _derived(engine, manifest, dict(zip(names, keys, strict=True)))
            findings += _recodes(engine, manifest, dict(zip(names, keys, strict=True)))
            findings.append(_tables(engine, folder, manifest, names))
            findings += _statistics(engine, folder, manifest, names)
            findings += _csv(folder, manifest)
    if with_table and manifest.get("format") in _TABLE_FORMATS and "catalog_table" not in manifest:
        findings.append(_in_format(folder, manifest, ledger))
    return Audit(str(manifest["release_id"]), tuple(findings))


def _described(folder: Path, manifest: dict[str, Any]) -> list[Finding]:
    """Check whether descriptor and page agree with the files; old releases may have neither."""
    if description.DESCRIPTOR not in manifest["files"]:
        return []
    faults = description.faults(folder, manifest)
    return [Finding("description", not faults, "; ".join(faults) or "it describes the files of the release")]


def _in_format(folder: Path, manifest: dict[str, Any], ledger: Mapping[str, bool] | None) -> Finding:
    """Check the Delta or Iceberg table that contains the release."""
    title = manifest["format"].capitalize()
    module = importlib.import_module(_TABLE_FORMATS[manifest["format"]])
    found = module.audit(folder.resolve().parent, manifest, ledger)
    passed = ["its records are those of the files", *found.unchecked]
    return Finding(f"{title} table", not found.faults, "; ".join(found.faults or passed))


def _table(folder: Path, manifest: dict[str, Any], original: OriginalCells | None) -> list[Finding]:
    """Check the columns and the guarantee of a protected table."""
    wrong = wrong_columns(folder, manifest)
    columns = Finding("columns", wrong == 0, f"{wrong} files whose columns differ from the manifest")
    if wrong:
        return [columns]
    try:
        guarantee = table_guarantee(manifest)
    except UnknownGuarantee as error:
        return [columns, Finding("guarantee", False, str(error))]
    with table_files(folder, manifest, original) as files:
        count = guarantee.count(files)
    kept = [columns, _kept(guarantee, count, manifest), *_tau_argus(folder, manifest)]
    if original is not None:
        failed = [
            each.key.column.replace("_", " ") for each in unmet(guarantee.private_requirements(), count)
        ]
        detail = (
            f"compared with the original cells: {', '.join(failed) or 'every sensitive cell is protected'}"
        )
        kept.append(Finding("sensitive cells", not failed, detail))
    return kept


def _tau_argus(folder: Path, manifest: dict[str, Any]) -> list[Finding]:
    """Check whether the tau-ARGUS files contain the cells of the tables."""
    if not any(name.startswith(f"{tau_argus.FOLDER}/") for name in manifest["files"]):
        return []
    wrong = sum(tau_argus.differs(folder, table, str(manifest["total"])) for table in manifest["tables"])
    return [Finding("tau-ARGUS", wrong == 0, f"{wrong} tables with different cells, codes or fields")]


def _promises(
    engine: duckdb.DuckDBPyConnection, manifest: dict[str, Any], columns: dict[str, str]
) -> list[Finding]:
    """Count every guarantee that the manifest of a release of records states."""
    try:
        guarantees = record_guarantees(manifest)
    except UnknownGuarantee as error:
        return [Finding("guarantee", False, str(error))]
    files = PublicRecords(engine, columns)
    return [_kept(guarantee, guarantee.count(files), manifest) for guarantee in guarantees]


def _derived(
    engine: duckdb.DuckDBPyConnection, manifest: dict[str, Any], columns: dict[str, str]
) -> list[Finding]:
    """Recompute the derived columns from the columns that are published with them."""
    if not any("derived" in column for column in manifest["columns"]):
        return []
    from microguard.pipelines.audit.derived import contradictions

    counts = contradictions(engine, manifest["columns"], columns)
    wrong = [f"{name} in {count:,} records" for name, count in counts.items() if count]
    detail = "; ".join(wrong) or f"{len(counts)} computed from the published columns, in every record"
    return [Finding("derived columns", not wrong, f"not as computed: {detail}" if wrong else detail)]


def _recodes(
    engine: duckdb.DuckDBPyConnection, manifest: dict[str, Any], columns: dict[str, str]
) -> list[Finding]:
    """Compare the values of recoded columns with the recodes stated in the manifest."""
    if not manifest.get("recodes"):
        return []
    from microguard.pipelines.audit.recodes import contradictions

    counts = contradictions(engine, manifest, columns)
    if not counts:
        return []
    wrong = [f"{name} in {count:,} records" for name, count in counts.items() if count]
    detail = "; ".join(wrong) or f"{len(counts)} columns compared"
    return [Finding("recodes", not wrong, f"not as stated: {detail}" if wrong else detail)]


def _kept(guarantee: Guarantee[Any], count: Count, manifest: dict[str, Any]) -> Finding:
    """Check whether a counted guarantee is satisfied and whether the manifest states the same numbers."""
    failed = unmet(guarantee.requirements(), count)
    stated = guarantee.manifest(count)
    if not failed and any(not _agrees(manifest.get(name), entry) for name, entry in stated.items()):
        return Finding(guarantee.name, False, f"the manifest states other numbers: {count.detail}")
    return Finding(guarantee.name, not failed, count.detail)


def _agrees(stated: Any, counted: Any) -> bool:
    """Return whether a manifest entry agrees with a count; old manifests have fewer numbers."""
    if isinstance(stated, dict) and isinstance(counted, dict):
        return all(name in counted and _agrees(each, counted[name]) for name, each in stated.items())
    if isinstance(stated, list) and isinstance(counted, list):
        return len(stated) == len(counted) and all(map(_agrees, stated, counted))
    return bool(stated == counted)


def _identity(folder: Path, manifest: dict[str, Any]) -> Finding:
    same = manifest["release_id"] == folder.resolve().name
    return Finding(
        "identity",
        same,
        "the name of the folder is the release id of the manifest"
        if same
        else "the name of the folder is not the release id of the manifest",
    )


def _checksums(folder: Path, manifest: dict[str, Any]) -> Finding:
    listed = manifest["files"]
    # a link to a folder is not a file of the release, but readers would follow it
    found = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    present = {path.relative_to(folder).as_posix() for path in found}
    foreign, missing = present - set(listed) - {"manifest.json"}, set(listed) - present
    changed = 0
    for name in set(listed) & present:
        with open(folder / name, "rb") as file:
            changed += hashlib.file_digest(file, "sha256").hexdigest() != listed[name]["sha256"]
    return Finding(
        "checksums",
        not (foreign or missing or changed),
        f"{len(listed)} files listed, {len(missing)} missing, {changed} changed, {len(foreign)} not listed",
    )


def _files(manifest: dict[str, Any]) -> Finding:
    """Check whether a release may contain each listed file; no check reads unexpected files."""
    stated = [table["file"] for table in manifest["tables"]]
    stated += [manifest["csv"]["file"]] if "csv" in manifest else []
    stems = [Path(name).stem for name in stated]
    known = {*stated, *description.files_of_description(stems)}
    listed = set(manifest["files"])
    others = {name for name in listed - known if not _of_records(name, manifest)}
    if manifest.get("content") == "table":
        others -= {name for name in others if tau_argus.is_named_after(name, stems)}
    absent = len(set(stated) - listed)
    detail = (
        f"{len(others)} listed files that the manifest does not describe, {absent} described and not listed"
    )
    return Finding("files", not others and not absent, detail)


def _of_records(name: str, manifest: dict[str, Any]) -> bool:
    return (
        manifest.get("content") != "table" and name.startswith(f"{MICRODATA}/") and name.endswith(".parquet")
    )


def _columns(folder: Path, manifest: dict[str, Any]) -> Finding:
    partition = manifest.get("partitioned_by")
    declared = [(each["name"], each["type"]) for each in manifest["columns"] if each["name"] != partition]
    wrong = sum(
        [(entry.name, str(entry.type)) for entry in pq.read_schema(path)] != declared
        for path in record_files(folder)
    )
    wrong += sum(
        pq.read_schema(folder / table["file"]).names != [*table["variables"], FREQUENCY]
        for table in manifest["tables"]
    )
    return Finding("columns", wrong == 0, f"{wrong} files with other columns or types than the manifest's")


def _footers(folder: Path) -> Iterator[Finding]:
    """Check what Parquet files hold next to their values: metadata, categories and statistics."""
    files = sorted(folder.rglob("*.parquet"))
    foreign = sum(map(has_foreign_metadata, files))
    yield Finding("metadata", foreign == 0, f"{foreign} files have metadata of another file")
    stale = sum(map(stale_dictionaries, files))
    yield Finding("dictionaries", stale == 0, f"{stale} columns have categories that do not occur")
    wrong = wrong_footers(files)
    detail = f"{wrong} columns in footers have statistics that are not those of their values"
    yield Finding("footers", wrong == 0, detail)


def _partitions(
    engine: duckdb.DuckDBPyConnection, folder: Path, manifest: dict[str, Any], keys: list[str]
) -> list[Finding]:
    """Check whether the records of each partition folder are k-anonymous by themselves."""
    if partition_field(manifest) is None:
        return []
    key_by_column = dict(zip([column["name"] for column in manifest["columns"]], keys, strict=True))
    faults = partition_faults(engine, folder, manifest, key_by_column)
    k = manifest["guarantee"].get("k")
    kept = "each holds one region"
    if k is not None:
        kept = f"in each of them every combination has at least k = {k} records"
    return [Finding("partitions", not faults, "; ".join(faults) or kept)]


def _csv(folder: Path, manifest: dict[str, Any]) -> list[Finding]:
    if "csv" not in manifest:
        return []
    wrong = csv_file.wrong_records(folder, manifest)
    return [Finding("CSV", wrong == 0, f"{wrong} records differ from those of the Parquet files")]


def _records(engine: duckdb.DuckDBPyConnection, manifest: dict[str, Any]) -> Finding:
    records = number(engine, "SELECT count(*) FROM microdata")
    return Finding(
        "records",
        records == manifest["records"],
        f"{records} records, the manifest says {manifest['records']}",
    )


def _tables(
    engine: duckdb.DuckDBPyConnection, folder: Path, manifest: dict[str, Any], names: list[str]
) -> Finding:
    different = 0
    for table in manifest["tables"]:
        columns = [_key(names, name) for name in table["variables"]]
        keys = ", ".join(columns)
        show(engine, "published", [folder / table["file"]], [*columns, FREQUENCY])
        counted = f"SELECT {keys}, count(*) AS {FREQUENCY} FROM microdata GROUP BY {keys}"
        published = f"SELECT {keys}, {FREQUENCY} FROM published"
        different += (
            number(
                engine,
                f"SELECT (SELECT count(*) FROM ({counted} EXCEPT ALL {published})) "
                f"+ (SELECT count(*) FROM ({published} EXCEPT ALL {counted}))",
            )
            > 0
        )
    return Finding(
        "tables", different == 0, f"{different} of {len(manifest['tables'])} tables differ from the records"
    )


def _statistics(
    engine: duckdb.DuckDBPyConnection, folder: Path, manifest: dict[str, Any], names: list[str]
) -> list[Finding]:
    if description.DESCRIPTOR not in manifest["files"]:
        return []
    columns = {name: _key(names, name) for name in names}
    wrong = description.wrong_statistics(engine, folder, columns)
    return [
        Finding("statistics", wrong == 0, f"{wrong} columns whose statistics in the descriptor are wrong")
    ]


def _key(names: list[str], name: str) -> str:
    """Return the column of the view that corresponds to a variable."""
    return f"c{names.index(name)}"
