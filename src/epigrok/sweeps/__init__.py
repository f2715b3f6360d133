"""Grids of runs: their description, the shipped ones, what they cost, and engines to run them.

Here belongs what makes many runs happen. What a single run does lives in `runs`, and reading the
results in `tables`.
"""
