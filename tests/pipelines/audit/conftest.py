"""A table of three releases."""

import pytest
from microguard.pipelines.publication import publish

from tests.pipelines.audit.tables import SECOND, THIRD
from tests.pipelines.releases import ID, entry, manifest, staged


@pytest.fixture
def published(areas):
    """Publish three releases in one table, and return a function of the format."""

    def make(form="delta"):
        for release_id in (ID, SECOND, THIRD):
            release = staged(areas, release_id)
            publish.publish(
                release, manifest(release_id, format=form), areas, entry(release_id), accepted=True
            )
        return areas.public.folder / form

    return make
