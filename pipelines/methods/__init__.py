"""Adapters of the methods: guarantees and calls. Their rows are in `schemas.method_registry`."""
