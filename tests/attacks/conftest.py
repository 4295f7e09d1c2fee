"""Common fixtures of attack programs on whole runs."""

from tests.pipelines.conftest import adjusted

__all__ = ["adjusted"]
