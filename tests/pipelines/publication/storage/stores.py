"""List and read the objects of a store without microguard."""

from __future__ import annotations

import obstore


def names(store):
    """Return the names of all objects, sorted."""
    return sorted(each["path"] for batch in obstore.list(store) for each in batch)
