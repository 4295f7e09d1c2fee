"""Configurations and tables of one small block."""

from __future__ import annotations

import pyarrow as pa
from microguard.pipelines.intake.fixed_point import Scale
from microguard.pipelines.records.block_config import BlockConfig
from microguard.pipelines.records.blocks import BLOCK, Plan
from microguard.pipelines.records.coordinates import Coordinates


def plan(scales, records=8):
    """Return the configuration of one block in one stratum."""
    return Plan(
        pa.table({"records": [records], "__first": [0], "__tree": [-1]}), (), Coordinates(scales, {}), 1
    )


def clustering(**changes):
    base = {
        "secret": 1,
        "k": 2,
        "seed": 1,
        "effort": "fast",
        "algorithm": "auto",
        "parameters": None,
        "representative": "auto",
        "counted": None,
        "min_diversity": 1,
        "sensitive": (),
        "plan": plan({"income": Scale(2.0, 0.0, 4)}),  # values are in units of 1, and means are not rounded
        "nominal": (),
        "dominance": (1, 85.0),
        "resume": None,
    }
    return BlockConfig(**base | changes)


def block(income, kind=None, **others):
    columns = {name: pa.array(values) for name, values in others.items()}
    return pa.table({"income": pa.array(income, kind), **columns, BLOCK: pa.array([0] * len(income))})
