"""Tests of `benchmark`: benchmarks are called by name, and each table is shown once it is measured."""

import importlib
from types import SimpleNamespace

import pytest
from microguard.pipelines.benchmark import benchmark
from microguard.schemas.errors import MicroguardError, SpecificationError

from tests.benchmarks.table import Table


def test_benchmark_refuses_an_unknown_name_and_lists_the_known_names():
    with pytest.raises(SpecificationError, match=r"cta.*main_job.*nominal, numeric.*Did you mean nominal\?"):
        benchmark("nominall", show=print)


def test_benchmark_shows_finished_tables_before_a_later_one_fails(monkeypatch):
    def run(quick):
        yield Table("first", ("n",), [(int(quick),)])
        raise AssertionError("second")

    known = importlib.import_module
    monkeypatch.setattr(
        importlib,
        "import_module",
        lambda name: SimpleNamespace(run=run) if name.endswith("cta") else known(name),
    )
    shown: list[str] = []
    with pytest.raises(MicroguardError, match=r"cta stopped.*second"):
        benchmark("cta", quick=True, show=shown.append)
    assert shown == ["**first**\n\n| n |\n| --- |\n| 1 |"]
