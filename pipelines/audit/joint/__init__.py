"""Joint audit of an evidence area: one linear system of all published numbers about related records.

The package reads published files and private evidence, and imports no audited code.
"""
