"""A workbench in the browser: choose roles, k and recodes by looking, then check, protect and sign.

Its state is the text of a specification. Whatever changes files or areas is a child process of the same
command line.
"""
