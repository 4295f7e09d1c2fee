"""The first example of a test compiles kernels: hypothesis's deadline per example would blame it."""

from hypothesis import settings

settings.register_profile("compiled", deadline=None)
settings.load_profile("compiled")
