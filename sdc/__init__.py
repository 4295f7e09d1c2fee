"""The methods of statistical disclosure control: arrays or frames in, values out.

Nothing here knows Spark, files or the screen. Each sub-package is one family of methods:
``microaggregation`` (numeric and mixed), ``nominal``, ``safe`` and ``cta`` (tables).
"""
