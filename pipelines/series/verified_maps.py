"""Record of the maps of members that were compared with their files, so that updates do not compare them
again.

The folder of a map has the checksums of the map and of the files, signed with the agency's key. An update
trusts the comparison while these checksums match; `microguard audit` compares again.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from microguard.pipelines.engine.files import checksum, write_atomically

COMPARED = "compared.json"
MICRODATA = "microdata"


def keep_verified(members: Path, files: Mapping[str, str], key: bytes) -> None:
    """Record that a map describes the files of its release.

    Parameters
    ----------
    members : Path
        Folder of the map.
    files : mapping of file name to SHA-256
        Checksums of the files of the release; the map describes its microdata.
    key : bytes
        The agency's secret.
    """
    content = {"map": _checksums(members), "files": _microdata(files)}
    signed = {**content, "signature": _signature(content, key)}
    write_atomically(members / COMPARED, json.dumps(signed, sort_keys=True))


def verified_before(
    members: Path, files: Mapping[str, str] | None, key: bytes
) -> Literal["yes", "no", "map changed"]:
    """Return whether a map was already found to describe the files of its release.

    Parameters
    ----------
    files : mapping of file name to SHA-256, or None
        Checksums of the present files; None if the release was withdrawn.

    Returns
    -------
    {"yes", "no", "map changed"}
        "no" if the map must be compared; "map changed" if the map changed since its comparison.
    """
    try:
        noted = json.loads((members / COMPARED).read_text(encoding="utf-8"))
        signature = str(noted.pop("signature"))
    except (OSError, ValueError, KeyError, TypeError):
        return "no"
    if not hmac.compare_digest(signature, _signature(noted, key)):
        return "no"
    if noted["map"] != _checksums(members):
        return "map changed"
    return "yes" if files is None or noted["files"] == _microdata(files) else "no"


def checksums_of(release: Path) -> dict[str, str]:
    """Compute the SHA-256 of each microdata file in a public folder."""
    paths = sorted((release / MICRODATA).rglob("*.parquet"))
    return {path.relative_to(release).as_posix(): checksum(path) for path in paths}


def _microdata(files: Mapping[str, str]) -> dict[str, str]:
    return {name: digest for name, digest in files.items() if name.startswith(f"{MICRODATA}/")}


def _checksums(members: Path) -> dict[str, str]:
    paths = sorted(path for path in members.rglob("*") if path.is_file())
    return {
        path.relative_to(members).as_posix(): checksum(path)
        for path in paths
        if path.name != COMPARED and not path.name.startswith((".", "_"))
    }


def _signature(content: Mapping[str, object], key: bytes) -> str:
    text = json.dumps(content, sort_keys=True).encode()
    return hmac.new(key, b"compared " + text, hashlib.sha256).hexdigest()
