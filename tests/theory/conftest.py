"""Property tests draw the same examples every time."""

from hypothesis import settings

settings.register_profile("theory", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("theory")
