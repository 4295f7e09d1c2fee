"""Tests of releases with many record files: tasks compute the same results as threads of the driver."""

from __future__ import annotations

import json

import pytest
from microguard.pipelines import verification
from microguard.pipelines.engine import tasks
from microguard.pipelines.publication import stage

from tests.pipelines.microdata import persons, run, specification

pytestmark = pytest.mark.spark
FEW, MANY = 4, 1000
RECORDS_PER_FILE = 15


def published(spark, folder, monkeypatch, at_once):
    """Publish records in several files; return data files, statistics, and sizes of calls in tasks."""
    folder.mkdir()
    persons().to_parquet(folder / "data", index=False)
    calls, in_tasks = [], tasks.in_tasks

    def counted(session, function, items):
        calls.append(len(items))
        return in_tasks(session, function, items)

    monkeypatch.setattr(tasks, "in_tasks", counted)
    monkeypatch.setattr(tasks, "AT_ONCE", at_once)
    monkeypatch.setattr(verification, "AT_ONCE", at_once)
    monkeypatch.setattr(stage, "RECORDS_PER_FILE", RECORDS_PER_FILE)
    spec = specification(folder, method={"effort": "fast"}, publish={"csv": True})
    _, areas = run(spark, spec, ())
    monkeypatch.undo()
    release = areas.public.release(areas.public.current())
    files = {
        path.relative_to(release).as_posix(): path.read_bytes()
        for path in release.rglob("*")
        if path.suffix in (".parquet", ".csv")
    }
    assert areas.public.is_whole(release.name)
    described = json.loads((release / "datapackage.json").read_text())["resources"]
    return files, [each.get("schema") for each in described], calls


def test_tasks_hash_describe_and_write_many_files_as_threads_do_for_few_files(spark, tmp_path, monkeypatch):
    in_tasks, described, calls = published(spark, tmp_path / "tasks", monkeypatch, FEW)
    in_threads, expected, none = published(spark, tmp_path / "threads", monkeypatch, MANY)
    assert sum(name.startswith("microdata/") for name in in_tasks) > FEW
    assert in_tasks == in_threads
    assert described == expected
    assert len(calls) >= 3  # tasks compute the statistics, and write and compare the CSV file
    assert none == []
