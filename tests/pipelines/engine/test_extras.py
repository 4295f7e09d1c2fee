"""Tests of extras: a missing package is named with its install command, and the methods need no extra."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest
from microguard.pipelines.engine import extras
from microguard.pipelines.engine.extras import EXTRAS, MissingExtra, missing_extra, require_extras

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OPTIONAL = sorted(name for names in EXTRAS.values() for name in names)
#: Make optional packages impossible to import, as if they were not installed.
WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
import importlib.util
"""


def run_without(names: list[str], code: str) -> subprocess.CompletedProcess[str]:
    """Run code without these packages."""
    words = [sys.executable, "-P", "-c", WITHOUT.format(names=names) + code]
    environment = dict(os.environ, PYTHONPATH=str(ROOT))
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300)


def test_every_extra_is_declared_in_pyproject_with_its_packages():
    packages = {"pyspark", "duckdb", "jinja2", "great_expectations", "matplotlib", "deltalake", "pyiceberg",
                "obstore", "nicegui", "tomlkit", "pandas", "pyarrow"}  # fmt: skip
    for extra, names in EXTRAS.items():
        declared = " ".join(PROJECT["optional-dependencies"][extra]).replace("-", "_")
        assert [name for name in names if name in packages and name not in declared] == []
    assert {name for names in EXTRAS.values() for name in names} == packages | {"py4j"}


def test_extras_of_packages_that_pin_pyspark_are_not_used():
    declared = [*PROJECT["dependencies"], *chain(*PROJECT["optional-dependencies"].values())]
    assert [each for each in declared if each.startswith("great-expectations[")] == []
    assert [each for each in declared if "pyspark" in each and "<" in each] == []


def test_require_extras_names_the_missing_packages_and_the_command_that_installs_them(monkeypatch):
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name in ("pyspark", "matplotlib") else 1)
    with pytest.raises(MissingExtra) as raised:
        require_extras("spark", "gx", "report")
    command = 'pip install "microguard[spark,report]"'
    assert str(raised.value) == f"pyspark, matplotlib: not installed. Install it: {command}"


def test_releases_as_delta_or_iceberg_tables_need_the_extra_lake():
    assert "lake" not in extras.extras_of_release("parquet")
    with_lake = ("spark", "gx", "report", "lake")
    assert extras.extras_of_release("delta") == extras.extras_of_release("iceberg") == with_lake


def test_missing_extra_does_not_change_other_import_errors():
    assert missing_extra(ImportError("no such name", name="numpy")) is None
    # this package is installed
    assert missing_extra(ImportError("cannot import name", name="duckdb")) is None
    assert missing_extra(ImportError("no name")) is None


#: Modules of `sdc` for data frames, and those for Arrow columns, which run in Spark.
OF_FRAMES = ("nominal", "safe", "utility.changes", "precompile")
OF_ARROW = tuple(f"clusters.{name}" for name in (
    "codes", "cost_matrix", "exact_values", "hierarchical", "ordinal", "published_means", "representatives",
))  # fmt: skip
IMPORT_ALL = """
import pkgutil, importlib, microguard, microguard.sdc, microguard.schemas
for package in (microguard.sdc, microguard.schemas):
    for each in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not each.name.startswith({excluded!r}):
            importlib.import_module(each.name)
print(len(microguard.microaggregate([[1.], [2.], [3.]], 3).labels))
"""


@pytest.mark.parametrize(
    ("installed", "excluded"),
    [((), (*OF_FRAMES, *OF_ARROW)), (("pandas",), OF_ARROW)],
    ids=["base", "frames"],
)
def test_methods_and_specification_are_imported_without_any_other_extra(installed, excluded):
    names = [name for name in OPTIONAL if name not in installed]
    code = IMPORT_ALL.format(excluded=tuple(f"microguard.sdc.{name}" for name in excluded))
    done = run_without(names, code)
    assert (done.stdout, done.returncode) == ("3\n", 0), done.stderr


def test_frame_method_without_pandas_raises_one_sentence_that_names_its_extra():
    done = run_without(["pandas"], "import microguard\nmicroguard.anonymise\n")
    assert done.stderr.splitlines()[-1] == (
        'ImportError: pandas: not installed. Install it: pip install "microguard[frames]"'
    )


def test_protection_without_its_extra_raises_one_sentence_that_names_the_extra():
    done = run_without(["pyspark"], "import microguard\nmicroguard.Protection\n")
    assert done.stderr.splitlines()[-1] == (
        'ImportError: pyspark: not installed. Install it: pip install "microguard[spark]"'
    )


def test_command_without_its_extra_exits_with_1_and_one_sentence(tmp_path):
    words = ["demo", "--records", "60", "--quiet", "--out", str(tmp_path)]
    code = f"import microguard\nsys.exit(microguard.main({words!r}))\n"
    for name, extra in (("pyspark", "spark"), ("great_expectations", "gx"), ("matplotlib", "report")):
        done = run_without([name], code)
        assert done.returncode == 1
        assert (
            done.stderr.split()
            == f'{name}: not installed. Install it: pip install "microguard[{extra}]"'.split()
        )
