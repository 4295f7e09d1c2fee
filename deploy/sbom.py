"""Write the software bill of materials of the running environment: sbom.py > sbom.json.

CycloneDX 1.5 in JSON, of the standard library alone: every installed distribution with version, licence as it
declares it, and what it requires of the others; and the jars that pyspark brings, with checksums. The same
environment gives the same text.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import zipfile
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

_REQUIRED = re.compile(r"[A-Za-z0-9._-]+")
_JAR = re.compile(r"(?P<name>.+?)-(?P<version>\d[\w.+-]*)\.jar")
_POM = re.compile(r"META-INF/maven/[^/]+/[^/]+/pom.properties")


def bill_of_materials() -> dict[str, Any]:
    """Return the document as a dict."""
    found = {_normal(each.metadata["Name"]): each for each in distributions()}
    components = [_component(name, each) for name, each in sorted(found.items())]
    jars = [_jar(path) for each in found.values() for path in _jars(each)]
    relations = [
        {
            "ref": _purl(name, each),
            "dependsOn": sorted(
                _purl(other, found[other]) for other in _required(each) if other in found and other != name
            ),
        }
        for name, each in sorted(found.items())
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "components": components + sorted(jars, key=lambda jar: str(jar["bom-ref"])),
        "dependencies": relations,
    }


def _component(name: str, distribution: Distribution) -> dict[str, Any]:
    licence = _licence(distribution)
    named = {"licenses": [{"license": {"name": licence}}]} if licence else {}
    purl = _purl(name, distribution)
    identity = {"bom-ref": purl, "name": name, "version": distribution.version, "purl": purl}
    return {"type": "library", **identity, **named}


def _licence(distribution: Distribution) -> str:
    """Return the declared licence: the expression, else the classifiers, else a short text."""
    metadata = distribution.metadata
    if expression := metadata.get("License-Expression"):
        return str(expression)
    classifiers = [each for each in metadata.get_all("Classifier") or [] if each.startswith("License ::")]
    if classifiers:
        return "; ".join(each.rpartition(" :: ")[2] for each in classifiers)
    text = str(metadata.get("License") or "").strip()
    return text if len(text.splitlines()) == 1 and len(text) <= 100 else ""


def _required(distribution: Distribution) -> set[str]:
    """Return the names of the packages that a distribution may require, with all its extras."""
    lines = distribution.requires or []
    return {_normal(match[0]) for line in lines if (match := _REQUIRED.match(line)) is not None}


def _jars(distribution: Distribution) -> list[Path]:
    files = [file for file in distribution.files or [] if file.suffix == ".jar"]
    return [Path(str(distribution.locate_file(file))) for file in files]


def _jar(path: Path) -> dict[str, Any]:
    """Return a jar by its Maven coordinates if it has exactly one, else by its name."""
    content = path.read_bytes()
    match = _JAR.fullmatch(path.name)
    name, version = (match["name"], match["version"]) if match else (path.stem, "")
    purl = {}
    with zipfile.ZipFile(path) as jar:
        poms = [entry for entry in jar.namelist() if _POM.fullmatch(entry)]
        if len(poms) == 1:
            lines = jar.read(poms[0]).decode("utf-8", "replace").splitlines()
            pom = dict(line.strip().split("=", 1) for line in lines if "=" in line)
            purl = {"purl": f"pkg:maven/{pom['groupId']}/{pom['artifactId']}@{pom['version']}"}
    return {
        "type": "library",
        "bom-ref": f"jar:{path.name}",
        "name": name,
        "version": version,
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}],
        **purl,
    }


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _purl(name: str, distribution: Distribution) -> str:
    return f"pkg:pypi/{name}@{distribution.version}"


if __name__ == "__main__":
    json.dump(bill_of_materials(), sys.stdout, indent=1, sort_keys=True)
    print()
