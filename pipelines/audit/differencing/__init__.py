"""Joint audit of records: measure what all releases of a source disclose together.

This package imports no other package of microguard, so that the audit does not depend on audited code.
"""
