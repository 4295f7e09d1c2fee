"""Tests that functions of Spark are looked up in Java once."""

import sys

import pytest
from microguard.pipelines.engine.spark_functions import remember_functions
from pyspark.sql import functions as f


@pytest.mark.spark
def test_spark_function_is_looked_up_once_and_gives_the_same_expression(spark, monkeypatch):
    asked = []
    first = str(f.sqrt(f.lit(2)))
    jvm = spark.sparkContext._jvm
    monkeypatch.setattr(type(jvm), "__getattr__", lambda _, name: asked.append(name))
    again = f.sqrt(f.lit(2))
    monkeypatch.undo()
    assert asked == []
    assert str(again) == first
    assert jvm.org.apache.spark.sql.functions is not None  # other functions are looked up as before


def test_remember_functions_is_idempotent():
    remember_functions()
    once = sys.modules[f.col.__module__]._get_jvm_function
    remember_functions()
    assert sys.modules[f.col.__module__]._get_jvm_function is once
