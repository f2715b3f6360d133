"""Figures: a table goes in, a matplotlib Figure comes out. No torch, no computing."""
