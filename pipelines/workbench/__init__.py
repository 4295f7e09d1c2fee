"""Workbench in the browser: choose roles, k and recodes, then check, protect and sign.

The state of the workbench is the text of a specification. Every operation that changes files or areas runs as
a child process with the same command line.
"""
