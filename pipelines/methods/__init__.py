"""Adapters of the methods: guarantees and calls. The method registry is `schemas.method_registry`."""
