"""Build backend: setuptools, with the four folders of the checkout below the package ``microguard``.

The list of packages is derived from the folders. An editable installation contains only the module, which
finds the folders of the checkout by its own path. The same sources give the same bytes of a wheel: dates and
modes are fixed, and each build has a folder of its own, because setuptools keeps deleted files in ``build``.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

import setuptools
from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403 (the hooks of a backend)

FOLDERS = ("jobs", "pipelines", "schemas", "sdc")
#: Seconds of the date of all files in a wheel, unless the variable of this name is set: 1 January 1980, the
#: first that a ZIP file can express.
SOURCE_DATE_EPOCH = "315532800"
_DEPRECATED = {"sdc": "deploy/deprecated/sdc"}
_setup = setuptools.setup


def wheel_setup(**attributes: Any) -> Any:
    """Run setuptools with the packages in the folders, and the deprecated name ``sdc``."""
    patterns = [pattern for name in FOLDERS for pattern in (name, f"{name}.*")]
    names = setuptools.find_namespace_packages(include=patterns)  # the folders include those of data files
    return _setup(
        packages=[*(f"microguard.{name}" for name in names), *_DEPRECATED],
        package_dir={**{f"microguard.{name}": name for name in FOLDERS}, **_DEPRECATED},
        **attributes,
    )


def editable_setup(**attributes: Any) -> Any:
    """Run setuptools with the module, and the deprecated name ``sdc``."""
    return _setup(packages=list(_DEPRECATED), package_dir=dict(_DEPRECATED), **attributes)


def build_wheel(*arguments: Any, **named: Any) -> str:
    """Build a wheel; the same sources give the same bytes."""
    os.environ.setdefault("SOURCE_DATE_EPOCH", SOURCE_DATE_EPOCH)
    mask = os.umask(0o022)
    try:
        with tempfile.TemporaryDirectory() as base:
            setuptools.setup = lambda **attributes: wheel_setup(
                options={"build": {"build_base": base}}, **attributes
            )
            return str(build_meta.build_wheel(*arguments, **named))
    finally:
        os.umask(mask)


def build_editable(*arguments: Any, **named: Any) -> str:
    """Build an editable wheel."""
    setuptools.setup = editable_setup
    return str(build_meta.build_editable(*arguments, **named))


setuptools.setup = wheel_setup
