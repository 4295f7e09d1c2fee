"""Adapters of the methods: what each promises, and its call from a run; rows in `schemas.method_registry`."""
