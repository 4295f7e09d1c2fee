"""Tests of failed tasks: they report the class of their error and no value."""

import pytest
from microguard.pipelines.engine.tasks import in_tasks
from microguard.schemas.errors import MicroguardError
from pyspark.errors import PySparkException

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("raised", "kept"), [(ValueError, False), (KeyError, False), (OSError, True), (MicroguardError, True)]
)
def test_error_text_leaves_a_task_only_if_it_is_a_file_error_or_an_error_of_microguard(spark, raised, kept):
    def fails(item):
        raise raised(f"income {item}")

    with pytest.raises(PySparkException) as failed:
        in_tasks(spark, fails, [4711])
    assert ("income 4711" in str(failed.value)) == kept
    assert raised.__name__ in str(failed.value)
