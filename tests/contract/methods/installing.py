"""Install a third-party method for one test: its folder on the path, its entry point as metadata."""

from __future__ import annotations

import shutil
import sys
import tomllib
from pathlib import Path

import pytest
from microguard.schemas.method_registry import GROUP

PLUGINS = Path(__file__).parent / "plugins"


def install(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **replaced: tuple[str, str]) -> Path:
    """Copy a package and install it; in each file that is named, a text may be replaced by another.

    Returns
    -------
    Path
        Its folder of source files.
    """
    project = folder / f"project-{name}"
    shutil.copytree(PLUGINS / name, project, ignore=shutil.ignore_patterns("__pycache__"))
    for file, (text, other) in replaced.items():
        path = project / name / f"{file}.py"
        content = path.read_text(encoding="utf-8")
        assert text in content
        path.write_text(content.replace(text, other), encoding="utf-8")
    declared = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    metadata = project / f"{declared['name']}-{declared['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {declared['name']}\nVersion: {declared['version']}\n", encoding="utf-8"
    )
    points = "\n".join(f"{key} = {value}" for key, value in declared["entry-points"][GROUP].items())
    (metadata / "entry_points.txt").write_text(f"[{GROUP}]\n{points}\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(project))
    for module in [each for each in sys.modules if each.partition(".")[0] == name]:
        monkeypatch.delitem(sys.modules, module)
    return project / name
