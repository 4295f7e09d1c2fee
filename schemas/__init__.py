"""Description of the data: release specification, roles and requirements.

Importing this package takes no noticeable time.
"""
