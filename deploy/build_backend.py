"""Build backend: setuptools, which puts the four folders of the checkout below ``microguard`` in a wheel.

Setuptools takes a list of packages and the folders they are in; here both follow from the folders.
"""

from __future__ import annotations

from typing import Any

import setuptools
from setuptools.build_meta import *  # noqa: F403 (the hooks of a backend)

FOLDERS = ("jobs", "pipelines", "schemas", "sdc")
_setup = setuptools.setup


def setup(**attributes: Any) -> Any:
    """Run setuptools with the packages that the folders hold, and the deprecated name ``sdc``."""
    found = setuptools.find_packages(include=[pattern for name in FOLDERS for pattern in (name, f"{name}.*")])
    return _setup(
        packages=[*(f"microguard.{name}" for name in found), "sdc"],
        package_dir={**{f"microguard.{name}": name for name in FOLDERS}, "sdc": "deploy/deprecated/sdc"},
        **attributes,
    )


setuptools.setup = setup
