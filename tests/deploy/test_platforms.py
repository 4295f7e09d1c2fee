"""Tests of recipes for platforms that the tests cannot start, validated with the platforms' own models."""

from __future__ import annotations

import ast
import json
import subprocess
from pathlib import Path

import botocore.session
import pytest
import yaml
from botocore.validate import ParamValidator

from tests.deploy.recipes import DEPLOY, verb_of

SCRIPTS = ["databricks/install.sh", "emr/bootstrap.sh", "image/entrypoint", "cluster", "local"]


@pytest.mark.parametrize("name", SCRIPTS)
def test_deploy_scripts_have_valid_bash_syntax(name):
    assert (DEPLOY / name).stat().st_mode & 0o111
    done = subprocess.run(["bash", "-n", DEPLOY / name], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_emr_step_is_valid_for_botocore_and_calls_the_command():
    request = json.loads((DEPLOY / "emr" / "steps.json").read_text())
    model = botocore.session.get_session().get_service_model("emr")
    report = ParamValidator().validate(request, model.operation_model("AddJobFlowSteps").input_shape)
    assert not report.has_errors(), report.generate_report()
    [step] = request["Steps"]
    assert verb_of(step["HadoopJarStep"]["Args"]) == "protect"


def test_databricks_bundle_is_valid_and_runs_our_script():
    jobs = pytest.importorskip(
        "databricks.bundles.jobs", reason="needs a separate environment; tested manually"
    )
    bundle = yaml.safe_load((DEPLOY / "databricks" / "databricks.yml").read_text())
    job = jobs.Job.from_dict(bundle["resources"]["jobs"]["persons"])
    assert job.as_dict() == bundle["resources"]["jobs"]["persons"]


def test_databricks_script_uses_public_names_and_does_not_stop_the_session():
    bundle = yaml.safe_load((DEPLOY / "databricks" / "databricks.yml").read_text())
    [task] = bundle["resources"]["jobs"]["persons"]["tasks"]
    script = DEPLOY / "databricks" / task["spark_python_task"]["python_file"]
    attributes = {
        node.attr for node in ast.walk(ast.parse(script.read_text())) if isinstance(node, ast.Attribute)
    }
    assert {"Protection", "protect", "publish", "table"} <= attributes
    assert "stop" not in attributes


def test_spark_defaults_have_a_comment_above_every_setting():
    lines = (DEPLOY / "spark-defaults.conf").read_text().splitlines()
    settings = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    assert all(len(setting) == 2 for setting in settings)
    paragraphs = "\n".join(lines).split("\n\n")[1:]
    assert all(paragraph.startswith("# ") for paragraph in paragraphs)
    assert len({name for name, _ in settings}) == len(settings)
    log = Path("/opt/microguard/conf/log4j2.properties")
    assert f"file:{log}" in dict(settings)["spark.executor.extraJavaOptions"]
    assert f"{log.parent}/" in (DEPLOY / "image" / "Containerfile").read_text()
