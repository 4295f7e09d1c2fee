"""Look at an object store as its owner does."""

from __future__ import annotations

import obstore


def names(store):
    """Names of all objects, sorted."""
    return sorted(each["path"] for batch in obstore.list(store) for each in batch)
