"""Paths as users write them in a specification, on the command line or in the environment."""

from __future__ import annotations

import os

from microguard.schemas.errors import SpecificationError


def expanded(path: str) -> str:
    """Expand a leading ``~`` or ``~user`` to a home folder, which a shell does not do in all places.

    Raises
    ------
    SpecificationError
        If the home folder is unknown. A folder with the literal name ``~`` is not supported.
    """
    if not path.startswith("~"):
        return path
    whole = os.path.expanduser(path)
    if whole.startswith("~"):
        raise SpecificationError(
            f"The path {path}: expected a home folder of this system after ~, found none. Write the whole "
            "path, or begin it with ./ if a folder is named so."
        )
    return whole
