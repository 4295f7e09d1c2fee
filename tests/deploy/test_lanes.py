"""Tests of the dependency lanes: installed versions, jobs, and the conditions for a failure."""

from __future__ import annotations

import hashlib
import importlib
import io
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from microguard.jobs.parser import parse
from microguard.schemas.specification.read import read_specification

from deploy.dependency_lanes import spark_catalogs
from deploy.dependency_lanes.__main__ import main, run_lanes
from deploy.dependency_lanes.independent_count import records_fault, rounding_fault, table_fault
from deploy.dependency_lanes.jobs import JOBS, REFUSED, Job
from deploy.dependency_lanes.lane import (
    EXTRAS,
    FIND_PYTHON,
    InstallationFailed,
    Lane,
    copy_sources,
    lower_bounds,
    supported_versions,
    user_dependencies,
)
from deploy.dependency_lanes.page import page, remember
from deploy.dependency_lanes.results import JobResult, compare, exit_code_of, table_of
from tests.deploy.recipes import DEPLOY

PYPROJECT = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
#: Data files of the wheel.
PATTERNS = PYPROJECT["tool"]["setuptools"]["package-data"]["*"]
RESULT = JobResult(0, 12.4, release_ids=("a1",), values=("b\t1", "c\t2"))


def test_lower_bounds_pins_each_dependency_to_its_declared_lower_bound():
    requirements = [
        "numpy>=2.2,<3",
        "great-expectations[spark]>=1.24, <2",
        "tqdm>=4.66",
        'tzdata <3,>=2024; a == "b"',
    ]
    assert lower_bounds(requirements).split() == [
        "numpy==2.2", "great-expectations==1.24", "tqdm==4.66", "tzdata==2024",
    ]  # fmt: skip


@pytest.mark.parametrize("requirement", ["numpy", "numpy<3", "numpy!=2.1"])
def test_lower_bounds_refuses_a_dependency_without_a_lower_bound(requirement):
    with pytest.raises(ValueError, match=f"'{requirement}': expected one lower bound"):
        lower_bounds([requirement])


def test_every_declared_dependency_has_a_lower_bound():
    declared = user_dependencies(PROJECT)
    assert len(lower_bounds(declared).splitlines()) == len(set(declared)) > 15


def test_lane_of_a_spark_version_pins_all_packages_except_pyspark():
    lane = Lane.from_name("spark-3.5-3.11", DEPLOY)
    assert (lane.choice, lane.python, lane.name) == ("spark-3.5", "3.11", "spark-3.5-3.11")
    pinned = (DEPLOY / "constraints.txt").read_text().splitlines()
    chosen = lane._constraints(PROJECT, DEPLOY.parent).splitlines()
    assert set(chosen) - set(pinned) == {"pyspark==3.5.*"}
    assert sorted(line.partition("==")[0] for line in set(pinned) - set(chosen)) == ["py4j", "pyspark"]


def test_lane_installs_the_extras_of_the_extra_all():
    assert PROJECT["optional-dependencies"]["all"] == [f"microguard[{','.join(EXTRAS)}]"]


def test_requires_python_and_find_python_name_the_same_versions():
    [line] = re.findall(r'^supported="([^"]*)"', FIND_PYTHON.read_text(), re.MULTILINE)
    assert line.split() == supported_versions(PROJECT["requires-python"])


@pytest.mark.parametrize("name", ["oldest-3.11", "lowest", "lowest-3", "lowest-3.11-", "spark-4-3.11", ""])
def test_lanes_refuses_an_unknown_lane_with_exit_code_2(name, capsys, tmp_path):
    assert main(["--dir", str(tmp_path), "--", name]) == 2
    assert f"lane {name!r}: expected" in capsys.readouterr().err


def test_compare_reports_different_values_as_a_fault_only_for_equal_release_ids():
    other = replace(RESULT, values=("b\t1", "c\t3"))
    assert compare(RESULT, RESULT) == "same"
    assert compare(replace(RESULT, release_ids=("a2",)), RESULT) == "same"
    assert compare(other, RESULT) == "same release id, other values (1 of 2 rows)"
    assert compare(replace(other, release_ids=("a2",)), RESULT).startswith(
        "other values and other release id"
    )
    assert compare(JobResult(1), RESULT) == compare(RESULT, None) == "-"


@pytest.mark.parametrize(
    ("result", "exit_code"),
    [
        (RESULT, 0),
        (replace(RESULT, exit_code=5), 1),
        (replace(RESULT, values=("x",)), 1),
        (replace(RESULT, values=("x",), release_ids=("a2",)), 0),
    ],
)
def test_exit_code_of_lanes_is_1_if_a_job_failed_or_one_release_id_has_two_answers(result, exit_code):
    assert exit_code_of({"lowest-3.11": {"table": result}, "pinned-3.11": {"table": RESULT}}) == exit_code


def test_table_of_results_compares_with_the_pinned_lane_and_ends_with_the_messages():
    failed = JobResult(5, 3.2, "protect: no worker")
    lines = table_of({"newest-3.13": {"table": failed}, "pinned-3.11": {"table": RESULT}}).splitlines()
    header = ["lane", "job", "exit", "seconds", "values", "compared", "with", "pinned-3.11"]
    assert lines[0].split() == header
    assert [line.split() for line in lines[1:3]] == [
        ["newest-3.13", "table", "5", "3", "-"], ["pinned-3.11", "table", "0", "12", "same"],
    ]  # fmt: skip
    assert lines[-1] == "newest-3.13 table: protect: no worker"


def test_run_lanes_continues_after_a_lane_that_cannot_be_installed(monkeypatch, tmp_path):
    def refuse(lane):
        raise InstallationFailed(f"no Python {lane.python}")

    monkeypatch.setattr(Lane, "create_environment", refuse)
    lanes = [Lane.from_name(name, tmp_path) for name in ("lowest-3.11", "newest-3.99")]
    results = run_lanes(lanes, list(JOBS), tmp_path, tmp_path)
    assert {name: done["install"].message for name, done in results.items()} == {
        "lowest-3.11": "no Python 3.11", "newest-3.99": "no Python 3.99",
    }  # fmt: skip
    assert exit_code_of(results) == 1


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_every_job_of_a_lane_has_a_valid_command_and_specification(job, tmp_path):
    job.prepare(tmp_path)
    for command in job.commands:
        if command[0] == "-c":
            compile(command[1], job.name, "exec")
            continue
        if command[0].endswith(".py"):
            assert Path(command[0]).is_file()
            continue
        parsed = parse(command)
        if path := getattr(parsed, "specification", None):
            specification = read_specification(tmp_path / path, parsed.overrides)
            assert Path(specification.input_path).is_file()


def lane_of_stand_ins(folder: Path, microguard: str, python: str) -> Lane:
    """Return a dependency lane whose commands are replaced by shell scripts."""
    lane = Lane.from_name("pinned-3.11", folder)
    lane.interpreter.parent.mkdir(parents=True)
    for name, script in (("microguard", microguard), ("python", python)):
        path = lane.interpreter.with_name(name)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    return lane


def test_job_of_a_lane_returns_the_release_ids_and_the_values_of_the_independent_count(tmp_path):
    lane = lane_of_stand_ins(tmp_path, """echo '{"release_id": "a1"}'""", "printf 'x\\ny\\n' > values.txt")
    result = Job("job", (("protect",),)).run(lane, tmp_path / "key")
    assert (result.exit_code, result.release_ids, result.values) == (0, ("a1", "a1"), ("x", "y"))


def test_job_of_a_lane_ends_with_the_exit_code_and_message_of_its_first_failed_command(tmp_path):
    lane = lane_of_stand_ins(tmp_path, '[ "$1" = demo ] || { echo "no $1" >&2; exit 5; }', "exit 1")
    result = Job("job", (("demo",), ("protect",), ("adjust",))).run(lane, tmp_path / "key")
    assert (result.exit_code, result.message) == (5, "protect: no protect")
    unaccepted = Job("job", (("demo",),), lake="lake")
    lane = lane_of_stand_ins(tmp_path / "other", "exit 0", 'echo "one class of 2" >&2; exit 1')
    assert unaccepted.run(lane, tmp_path / "key").message.endswith("independent_count.py: one class of 2")


def records(classes: dict[str, int]) -> pd.DataFrame:
    return pd.DataFrame({"sex": [sex for sex, size in classes.items() for _ in range(size)], "region": "r"})


def test_independent_count_refuses_a_class_below_k_and_missing_records():
    groups = [{"name": "all", "variables": ["sex"], "with_region": ["region"]}]
    manifest = {"guarantee": {"k": 3, "groups": groups}}
    assert records_fault(records({"f": 3, "m": 4}), manifest, 7) is None
    assert "smallest class has 2 records" in str(records_fault(records({"f": 2, "m": 5}), manifest, 7))
    assert "8 records expected, 7 published" in str(records_fault(records({"f": 3, "m": 4}), manifest, 8))
    assert "k = 3 expected" in str(
        records_fault(records({"f": 7}), {"guarantee": {"k": 2, "groups": groups}}, 7)
    )


def firms_and_cells() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a branch in two regions: its sensitive cell of two firms is published as 12 instead of 10."""
    firms = pd.DataFrame(
        {"section": "A", "branch": "b", "region": list("xxyyy"), "turnover": [5.0, 5.0, 10.0, 10.0, 10.0]}
    )
    rows = [
        (section, branch, region, value)
        for section, branch in (("Total", "Total"), ("A", "Total"), ("A", "b"))
        for region, value in (("x", 12.0), ("y", 28.0), ("Total", 40.0))
    ]
    return firms, pd.DataFrame(rows, columns=["section", "branch", "region", "turnover"])


def test_independent_count_refuses_a_table_that_is_not_additive_or_shows_a_sensitive_cell():
    firms, cells = firms_and_cells()
    assert table_fault(cells, firms) is None
    assert table_fault(cells.assign(turnover=cells["turnover"].map(Decimal)), firms) is None
    for row in range(len(cells)):
        assert "add up" in str(
            table_fault(cells.assign(turnover=cells["turnover"] + (cells.index == row)), firms)
        )
    as_it_was = cells.assign(turnover=cells["region"].map({"x": 10.0, "y": 30.0, "Total": 40.0}))
    assert table_fault(as_it_was, firms) == "3 of 3 sensitive cells are published as they were"
    assert table_fault(cells[1:], firms) == "1 cells of the input are not in the table"


def test_independent_count_refuses_rounded_counts_that_are_no_multiples_or_not_additive():
    persons = pd.DataFrame({"sex": list("fffmmmmm"), "region": list("xxyxxxyy")})
    rows = [
        (sex, region, (5 if sex == "f" else 0) + (5 if region == "x" else 0))
        for sex, region in (("f", "x"), ("f", "y"), ("m", "x"), ("m", "y"))
    ]
    cells = pd.DataFrame(rows, columns=["sex", "region", "frequency"])
    for column in ("sex", "region"):
        sums = cells.groupby([name for name in ("sex", "region") if name != column])["frequency"].sum()
        cells = pd.concat([cells, sums.reset_index().assign(**{column: "Total"})], ignore_index=True)
    assert rounding_fault(cells, persons) is None
    moved = cells["frequency"] - 5 * (cells.index == 0)
    assert rounding_fault(cells.assign(frequency=moved), persons) == "the sums over sex, region do not add up"
    assert "multiple" in str(rounding_fault(cells.assign(frequency=moved + 1), persons))
    assert "missing" in str(rounding_fault(cells[1:], persons))
    assert "further" in str(rounding_fault(cells.assign(frequency=moved + 15), persons))


BUILD = """
import os, sys
os.umask(int(sys.argv[2], 8))
sys.path.insert(0, "deploy")
import build_backend
build_backend.build_wheel(sys.argv[1])
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """Build the wheel twice, from copies with other dates and with another umask."""
    setuptools = pytest.importorskip("setuptools", reason="virtual environments of Python 3.12 have none")
    if int(setuptools.__version__.partition(".")[0]) < 77:
        pytest.skip("the build needs setuptools 77, of the extra test")
    folder, built = tmp_path_factory.mktemp("wheels"), []
    for number, mask in enumerate(("022", "007")):
        source = copy_sources(DEPLOY.parent, folder / f"source{number}")
        for path in source.rglob("*"):
            os.utime(path, (number * 10**8, number * 10**8))
        subprocess.run(
            [sys.executable, "-c", BUILD, folder / str(number), mask],
            cwd=source,
            check=True,
            capture_output=True,
        )
        built += [path.read_bytes() for path in (folder / str(number)).iterdir()]
        assert not (source / "build").exists()
    return built


def test_two_builds_of_the_wheel_have_the_same_bytes(wheels):
    assert wheels[0] == wheels[1]
    with zipfile.ZipFile(io.BytesIO(wheels[0])) as wheel:
        assert "microguard/schemas/py.typed" in wheel.namelist()


def test_version_of_checkout_and_wheel_is_the_newest_of_the_change_log(wheels, tmp_path):
    newest = (DEPLOY / "CHANGELOG.md").read_text().partition("\n## ")[2].partition("\n")[0]
    with zipfile.ZipFile(io.BytesIO(wheels[0])) as wheel:
        wheel.extractall(tmp_path)
    for folder in (DEPLOY.parent, tmp_path):
        done = subprocess.run(
            [sys.executable, "-P", "-m", "microguard", "--version"],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(folder)},
            capture_output=True,
            text=True,
        )
        assert (done.stdout, done.returncode) == (f"microguard {newest}\n", 0), done.stderr


def test_wheel_contains_every_folder_of_data_files(monkeypatch):
    pytest.importorskip("setuptools", reason="virtual environments contain setuptools only up to Python 3.11")
    build_backend = importlib.import_module("deploy.build_backend")
    monkeypatch.chdir(DEPLOY.parent)
    monkeypatch.setattr(build_backend, "_setup", lambda **attributes: attributes)
    packages = set(build_backend.wheel_setup()["packages"])
    folders = {
        ".".join(("microguard", *path.relative_to(DEPLOY.parent).parent.parts))
        for name in build_backend.FOLDERS
        for suffix in PATTERNS
        for path in (DEPLOY.parent / name).rglob(suffix)
    }
    assert {"microguard.pipelines.evidence.sections", "microguard.schemas.examples"} <= folders <= packages


def test_refusal_expected_for_one_spark_version_is_a_failure_in_others(tmp_path):
    lane = lane_of_stand_ins(tmp_path, f'echo "Spark Connect: expected 4.0" >&2; exit {REFUSED}', "exit 1")
    refused = Job("connect", (("protect",),), refused_on=(lane.choice,)).run(lane, tmp_path / "key")
    assert (refused.exit_code, refused.refusal) == (0, "Spark Connect: expected 4.0")
    assert compare(refused, RESULT) == "refused by name"
    failed = Job("connect", (("protect",),), refused_on=("spark-3.5",)).run(lane, tmp_path / "key")
    assert (failed.exit_code, failed.refusal) == (REFUSED, "")


def test_page_of_lanes_shows_digests_versions_failures_and_skipped_jobs(tmp_path, monkeypatch):
    monkeypatch.setattr("deploy.dependency_lanes.jobs.TIMEOUT", 0.2)
    lane = lane_of_stand_ins(tmp_path / "stand_in", "sleep 30", "exit 1")
    late = Job("rounding", (("adjust",),)).run(lane, tmp_path / "key")
    for name, jobs in {
        "pinned-3.11": {"table": RESULT, "api": JobResult(0), "rounding": late},
        "spark-3.5-3.11": {"table": JobResult(5), "connect": JobResult(0, refusal="Spark Connect: expected")},
    }.items():
        (tmp_path / name).mkdir()
        remember(tmp_path / name, "1.2.3", "numpy==2.2.0\npyspark==3.5.9\n", jobs)
    remember(tmp_path / "pinned-3.11", "1.2.4", "numpy==2.2.0\npyspark==3.5.9\n", {"mixed": RESULT})
    lines = page(tmp_path, ["api", "connect", "mixed", "table", "rounding"]).splitlines()
    assert "| job | pinned-3.11 | spark-3.5-3.11 |" in lines
    expected = hashlib.sha256(b"b\t1\nc\t2").hexdigest()[:12]
    assert f"| table | `{expected}` | failed (5) |" in lines
    assert "| rounding | not finished | not run |" in lines
    assert "| api | passed | not run |" in lines
    assert "| connect | not run | refused by name |" in lines
    assert "| numpy | 2.2.0 | 2.2.0 |" in lines
    assert any("*Version:* 1.2.3, 1.2.4." in line for line in lines)


def test_spark_reads_an_sql_catalogue_under_the_name_of_pyiceberg_only_with_its_driver(
    monkeypatch, tmp_path, capsys
):
    settings: dict[str, str] = {}
    spark = SimpleNamespace(conf=SimpleNamespace(set=settings.__setitem__))
    monkeypatch.setattr(spark_catalogs, "DRIVER", tmp_path / "sqlite-jdbc.jar")
    assert spark_catalogs.catalog_in(spark, "sql", "sqlite:////srv/catalog.db", "token") is None
    assert not settings
    assert "is not installed" in capsys.readouterr().out
    (tmp_path / "sqlite-jdbc.jar").touch()
    assert spark_catalogs.catalog_in(spark, "sql", "sqlite:////srv/catalog.db", "token") == "default"
    assert settings["spark.sql.catalog.default.uri"] == "jdbc:sqlite:/srv/catalog.db"
    assert spark_catalogs.catalog_in(spark, "rest", "http://127.0.0.1:1", "token") == "rest"
    assert settings["spark.sql.catalog.rest.token"] == "token"


def test_spark_uses_the_iceberg_runtime_of_its_version_and_scala_and_reads_no_table_without_one(
    monkeypatch, tmp_path, capsys
):
    def installed(package: str, module: str, jar: str) -> None:
        (tmp_path / package / "jars").mkdir(parents=True)
        (tmp_path / package / "__init__.py").write_text(module)
        (tmp_path / package / "jars" / jar).touch()

    package = "a_package_with_runtimes"
    installed(package, "", "iceberg-spark-runtime-3.5_2.12-1.10.2.jar")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(spark_catalogs, "RUNTIMES", package)
    pyspark = SimpleNamespace(__version__="3.5.9", __file__=str(tmp_path / "pyspark" / "__init__.py"))
    monkeypatch.setitem(sys.modules, "pyspark", pyspark)
    installed("pyspark", "", "scala-library-2.12.18.jar")
    found = spark_catalogs._runtime()
    assert found is not None
    assert found.name == "iceberg-spark-runtime-3.5_2.12-1.10.2.jar"
    pyspark.__version__ = "4.1.4"
    with spark_catalogs.spark_session() as spark:
        assert spark is None
    assert "Spark does not read" in capsys.readouterr().out
