"""The workbench is an extra: without it, or where it cannot be imported, these tests are skipped."""

import pytest

pytest.importorskip("nicegui", reason="the extra [workbench] is not installed")
pytest.importorskip("tomlkit", reason="the extra [workbench] is not installed")
