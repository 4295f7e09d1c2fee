"""Tests of release notes: the section of a version in the change log."""

from __future__ import annotations

import pytest

from deploy.release_notes import CHANGELOG, release_notes
from tests.deploy.test_lanes import PROJECT

TEXT = """# Changes
intro

## 0.2.0
Two.

**Read this before you upgrade**
- a key

**Added**
- a verb

## 0.1.0
One.
"""


def test_release_notes_are_the_section_of_the_version():
    assert release_notes(TEXT, "0.1.0") == "# microguard 0.1.0\n\nOne.\n"
    assert release_notes(TEXT, "0.2.0").endswith("**Added**\n- a verb\n")
    with pytest.raises(ValueError, match=r"expected a version of the change log, one of 0\.2\.0, 0\.1\.0"):
        release_notes(TEXT, "0.3.0")


def test_release_notes_for_an_upgrade_end_after_the_section_to_read_before_upgrading():
    assert release_notes(TEXT, "0.2.0", upgrade=True) == (
        "# microguard 0.2.0\n\nTwo.\n\n**Read this before you upgrade**\n- a key\n"
    )
    assert release_notes(TEXT, "0.1.0", upgrade=True) == release_notes(TEXT, "0.1.0")


def test_change_log_has_a_section_for_the_version_of_the_package():
    assert release_notes(CHANGELOG.read_text(encoding="utf-8"), PROJECT["version"])
