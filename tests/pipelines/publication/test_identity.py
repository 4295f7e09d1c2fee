"""Tests that the release id depends only on inputs that determine the published values."""

from __future__ import annotations

from importlib.metadata import version
from types import SimpleNamespace

import pytest
from microguard.pipelines.publication import identity as identities
from microguard.pipelines.publication.identity import METHOD, SOFTWARE, identity

from tests.pipelines.microdata import specification

SCREENED = SimpleNamespace(fingerprint="of the input")


def made_from(folder, **sections):
    return identity(SCREENED, specification(folder, **sections), "records")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "sections",
    [
        {"quality": {"max_information_loss": 0.1}},
        {"publish": {"path": "elsewhere"}},
        {"publish": {"successive": "accept"}},
        {"publish": {"successive": "accept", "keep": 3}},
        {"input": {"path": "moved"}},
        {"input": {"expectations": "suite.json"}},
        {"population": {"path": "counts", "count": "people"}},
        {"method": {"min_diversity": 1}},
        {"missing": {"max_rejected": 0}},
    ],
    ids=[
        "gate",
        "area",
        "permission",
        "retention",
        "input path",
        "suite",
        "population",
        "default",
        "default of a section",
    ],
)
def test_identity_ignores_keys_that_do_not_change_the_release(sections, tmp_path):
    assert made_from(tmp_path, **sections) == made_from(tmp_path)


@pytest.mark.parametrize(
    "sections",
    [
        {"release": {"k": 4}},
        {"release": {"seed": 2}},
        {"release": {"period": "2026-11"}},
        {"method": {"effort": "standard"}},
        {"missing": {"max_rejected": 1}},
        {"publish": {"format": "delta"}},
        {"publish": {"partition_by": "region"}},
        {"publish": {"csv": True}},
    ],
    ids=["k", "seed", "period", "effort", "rejection", "format", "partitions", "csv"],
)
def test_identity_changes_with_keys_that_change_the_release(sections, tmp_path):
    assert made_from(tmp_path, **sections) != made_from(tmp_path)


def test_identity_contains_the_method_version_and_not_the_package_version(tmp_path):
    found = made_from(tmp_path)
    assert found["method"] == METHOD
    assert "version" not in found


@pytest.mark.parametrize("package", ["highspy", "numba", "numpy", "scipy"])
def test_identity_changes_with_the_versions_of_packages_that_determine_values(package, tmp_path, monkeypatch):
    before = made_from(tmp_path)
    assert before[SOFTWARE][package] == version(package)
    monkeypatch.setattr(identities, "deciding_versions", lambda: {**before[SOFTWARE], package: "0.1"})
    assert made_from(tmp_path) != before
