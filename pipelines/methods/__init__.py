"""Adapters of the methods, with guarantees and calls. The registry of methods is
`schemas.method_registry`.
"""
