"""Joint audit of an evidence area: one linear system for all published numbers of related records.

The package reads published files and private evidence, and imports no audited code.
"""
