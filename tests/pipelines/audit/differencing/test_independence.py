"""The joint audit does not depend on the code that it audits."""

from __future__ import annotations

import ast
from pathlib import Path

import microguard.pipelines.audit.differencing as joint

OURS = ("microguard", "pyspark")


def test_the_joint_audit_imports_no_other_package_of_microguard():
    for path in Path(joint.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [each.name for each in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                ours = name.split(".")[0] in OURS
                assert not ours or name.startswith("microguard.pipelines.audit.differencing"), (
                    path.name,
                    name,
                )
