"""Joint audit of an evidence area: one system for every number that was published of related records.

This package reads published files and private evidence, and imports no audited code.
"""
