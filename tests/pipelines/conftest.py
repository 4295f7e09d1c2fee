"""What tests of several rooms start from."""

import pytest

from pipelines.publication import publish
from pipelines.publication.areas import Areas
from tests.pipelines.releases import entry, manifest, staged


@pytest.fixture
def areas(tmp_path):
    return Areas(tmp_path / "lake" / "persons", tmp_path / "evidence" / "persons")


@pytest.fixture
def released(areas):
    publish.publish(staged(areas), manifest(), areas, entry())
    return areas
