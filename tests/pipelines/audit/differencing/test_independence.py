"""The joint audits do not depend on the code that they audit."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from microguard.pipelines.audit import differencing, joint

OURS = ("microguard", "pyspark")
ALLOWED = tuple(f"microguard.pipelines.audit.{name}" for name in ("differencing", "joint", "periods"))


@pytest.mark.parametrize(("package", "allowed"), [(differencing, ALLOWED[:1]), (joint, ALLOWED)])
def test_joint_audits_import_no_other_package_of_microguard(package, allowed):
    paths = list(Path(package.__file__).parent.glob("*.py"))
    assert len(paths) > 5
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [each.name for each in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                ours = name.split(".")[0] in OURS
                assert not ours or name.startswith(allowed), (
                    path.name,
                    name,
                )
