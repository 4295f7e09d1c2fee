"""Pin the packages of the image by version and checksum; call it after a change of versions.

Versions are those of `constraints.txt`. Checksums are those that pip reports for the files that it would
install on this machine. On a machine of another architecture, its checksums are added. No address is written.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
REQUIREMENTS, BUILD = HERE / "requirements.txt", HERE / "build.txt"
#: Builds microguard and the packages that are only available as sources.
BUILDER = "setuptools>=77"
_PIN = re.compile(r"(?P<name>\S+)==(?P<version>\S+)")
_CHECKSUM = re.compile(r"--hash=(sha256:[0-9a-f]{64})")

Pins = dict[tuple[str, str], set[str]]


def pins(text: str) -> Pins:
    """Parse a requirements file; return the checksums of each requirement by name and version."""
    read: Pins = {}
    for line in text.replace("\\\n", " ").splitlines():
        if pin := _PIN.match(line):
            read[pin["name"], pin["version"]] = set(_CHECKSUM.findall(line))
    return read


def _reported(*what: str) -> Pins:
    """Return the files that pip would install."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
    done = subprocess.run([*command, "--report", "-", *what], stdout=subprocess.PIPE, text=True, check=True)
    return {
        (each["metadata"]["name"].lower(), each["metadata"]["version"]): {
            f"sha256:{each['download_info']['archive_info']['hashes']['sha256']}"
        }
        for each in json.loads(done.stdout)["install"]
        if "archive_info"
        in each["download_info"]  # microguard is excluded, because it is installed from a folder
    }


def _write(path: Path, reported: Pins) -> None:
    before = pins(path.read_text(encoding="utf-8")) if path.exists() else {}
    lines = []
    for (name, version), checksums in sorted(reported.items()):
        both = sorted(checksums | before.get((name, version), set()))
        lines.append(" ".join([f"{name}=={version}", *(f"--hash={each}" for each in both)]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    _write(REQUIREMENTS, _reported("--constraint", str(ROOT / "deploy" / "constraints.txt"), f"{ROOT}[all]"))
    _write(BUILD, _reported(BUILDER))
