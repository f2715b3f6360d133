"""Grids of runs: their description, the shipped ones, what they cost, and engines to run them.

Everything that starts many runs belongs here. What a single run does lives in `runs`, reading the
results in `tables`.
"""
