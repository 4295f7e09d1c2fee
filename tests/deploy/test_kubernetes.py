"""Tests of the Kubernetes recipes: valid fields, unprivileged containers and valid command lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.deploy.recipes import DEPLOY, REFUSED, verb_of

FOLDER = DEPLOY / "kubernetes"
FILES = sorted(path.name for path in FOLDER.glob("*.yaml"))


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def pods(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the pod specifications in a document, including those of executors."""
    kind, spec = document["kind"], document.get("spec", {})
    if kind == "CronJob":
        yield spec["jobTemplate"]["spec"]["template"]["spec"]
    elif kind == "Job":
        yield spec["template"]["spec"]
    elif kind == "ConfigMap":
        yield yaml.safe_load(document["data"]["executor.yaml"])["spec"]
    elif kind == "SparkApplication":
        for part in (spec["driver"], spec["executor"]):
            container = {key: part[key] for key in ("securityContext", "volumeMounts")}
            yield {
                "securityContext": part["podSecurityContext"],
                "containers": [container],
                "volumes": spec["volumes"],
            }


def test_kubernetes_recipes_exist():
    assert FILES == ["cluster.yaml", "cronjob.yaml", "spark-application.yaml"]


@pytest.mark.parametrize("name", FILES)
def test_containers_are_unprivileged_and_mount_volumes_of_their_pod(name):
    pod_specifications = [pod for document in documents(name) for pod in pods(document)]
    assert pod_specifications
    for pod in pod_specifications:
        assert pod["securityContext"]["runAsNonRoot"] is True
        volumes = {volume["name"] for volume in pod["volumes"]}
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["readOnlyRootFilesystem"] is True
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
            assert "/tmp" in [mount["mountPath"] for mount in container["volumeMounts"]]


@pytest.mark.parametrize("name", ["cluster.yaml", "cronjob.yaml"])
def test_kubernetes_recipes_do_not_retry_refused_runs(name):
    jobs = [each for each in documents(name) if each["kind"] in ("Job", "CronJob")]
    assert len(jobs) == 1
    spec = jobs[0]["spec"].get("jobTemplate", jobs[0])["spec"]
    [rule, _] = spec["podFailurePolicy"]["rules"]
    assert rule["action"] == "FailJob"
    assert rule["onExitCodes"]["values"] == REFUSED


@pytest.mark.parametrize("name", FILES)
def test_kubernetes_recipes_call_the_command_with_valid_arguments(name):
    for document in documents(name):
        if document["kind"] == "SparkApplication":
            spec = document["spec"]
            assert verb_of([spec["mainApplicationFile"], *spec["arguments"]]) == "protect"
        elif document["kind"] in ("Job", "CronJob"):
            [pod] = pods(document)
            assert verb_of(pod["containers"][0]["args"]) == "protect"


@pytest.mark.parametrize("name", ["cluster.yaml", "cronjob.yaml"])
def test_kubernetes_recipes_are_valid_against_the_schemas_of_kubernetes(name):
    schemas = pytest.importorskip("kubernetes_validate", reason="its schemas take 140 MB; tried by hand")
    for document in documents(name):
        schemas.validate(document, "1.32", strict=True)
        for text in document.get("data", {}).values():
            if text.startswith("apiVersion"):
                schemas.validate(yaml.safe_load(text), "1.32", strict=True)
