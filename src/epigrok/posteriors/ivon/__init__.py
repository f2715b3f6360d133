"""IVON: the optimiser, its update, the gradients that wait for a step, and its state as a file."""

from epigrok.posteriors.ivon.optimiser import IVON
from epigrok.posteriors.ivon.optimiser_files import load_optimiser, save_optimiser

__all__ = ["IVON", "load_optimiser", "save_optimiser"]
