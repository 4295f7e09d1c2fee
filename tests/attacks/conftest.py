"""What attack programs on whole runs start from."""

from tests.pipelines.conftest import adjusted

__all__ = ["adjusted"]
