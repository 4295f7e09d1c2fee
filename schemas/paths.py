"""Paths as users write them in a specification, on the command line or in the environment."""

from __future__ import annotations

import os

from microguard.schemas.errors import SpecificationError


def expanded(path: str) -> str:
    """Expand a leading ``~`` or ``~user`` to a home folder, because a shell does not do so everywhere.

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
            f"The path {path}: expected an existing user's home folder after ~, found none. Write the whole "
            "path; if a folder has this name, begin the path with ./ instead."
        )
    return whole
