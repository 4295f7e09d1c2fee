"""The joint audit: what all releases of a source give away together.

Imports nothing of this house: what it says must not depend on the code it watches.
"""
