"""Kernels that may take the place of those in `epigrok.model.kernels`.

Right on an H200 by `benchmarks.attention_variants`; no training step has been timed with them.
"""
