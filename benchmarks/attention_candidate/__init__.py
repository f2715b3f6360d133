"""Kernels that may take the place of those in `epigrok.model.kernels`, not yet run on a GPU."""
