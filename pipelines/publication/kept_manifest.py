"""Store a copy of each published manifest in the evidence, because no checksum covers the manifest."""

from __future__ import annotations

from microguard.pipelines.engine.files import PRIVATE_FILE, private_folder, write_atomically
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.public_area import MANIFEST

KEPT = "published_manifest.json"


def keep_manifest(areas: Areas, release_id: str) -> None:
    """Copy the manifest of a published release to its evidence."""
    found = areas.public.storage.get(f"{release_id}/{MANIFEST}")
    assert found is not None
    write_atomically(private_folder(areas.record(release_id)) / KEPT, found.content, PRIVATE_FILE)


def has_its_manifest(areas: Areas, release_id: str) -> bool:
    """Return whether a release still has the manifest of its publication; early evidence has no copy."""
    kept, found = areas.record(release_id) / KEPT, areas.public.storage.get(f"{release_id}/{MANIFEST}")
    return not kept.is_file() or (found is not None and found.content == kept.read_bytes())
