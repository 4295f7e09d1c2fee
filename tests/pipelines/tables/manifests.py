"""Manifests of tables without files: their statements about method and limits."""

from __future__ import annotations

from typing import Any

from microguard.pipelines.guarantees.guarantee import Count
from microguard.pipelines.method import table_method
from microguard.pipelines.tables.manifest import layout_of, table_manifest
from microguard.pipelines.tables.read_back import WrittenTable
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table_input import table_of


def manifest_of(specification: Specification, relaxed: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the manifest of a table of four cells."""
    table = table_of(specification)
    written = WrittenTable(Count({}, {"cells": 4}), layout_of(table, {}), True, True, relaxed)
    return table_manifest(specification, table, table_method(specification).guarantee(), "r", written, False)
