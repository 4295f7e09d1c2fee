"""Tests of the bill of materials: every installed distribution, its requirements, and the jars of Spark."""

from __future__ import annotations

import hashlib
import re
from importlib.metadata import distributions, version
from pathlib import Path

import pyspark
import pytest

from deploy.sbom import bill_of_materials


@pytest.fixture(scope="module")
def bill():
    return bill_of_materials()


def test_bill_of_materials_names_every_distribution_and_every_jar_once(bill):
    refs = [each["bom-ref"] for each in bill["components"]]
    jars = {path.name for path in Path(pyspark.__file__).parent.rglob("*.jar")}
    assert len(refs) == len(set(refs))
    assert {f"jar:{name}" for name in jars} <= set(refs)
    installed = {re.sub(r"[-_.]+", "-", each.metadata["Name"]).lower() for each in distributions()}
    listed = {each["name"] for each in bill["components"] if each["bom-ref"].startswith("pkg:pypi")}
    assert listed == installed


def test_jar_in_the_bill_of_materials_has_its_maven_coordinates_and_checksum(bill):
    jars = {each["name"]: each for each in bill["components"]}
    path = next((Path(pyspark.__file__).parent / "jars").glob("log4j-core-*.jar"))
    log4j = jars["log4j-core"]
    assert log4j["purl"] == f"pkg:maven/org.apache.logging.log4j/log4j-core@{log4j['version']}"
    assert log4j["hashes"][0]["content"] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_dependencies_in_the_bill_of_materials_refer_to_components(bill):
    refs = {each["bom-ref"] for each in bill["components"]}
    relations = {each["ref"]: each["dependsOn"] for each in bill["dependencies"]}
    assert set(relations) | {ref for of in relations.values() for ref in of} <= refs
    assert f"pkg:pypi/numpy@{version('numpy')}" in relations[f"pkg:pypi/scipy@{version('scipy')}"]
