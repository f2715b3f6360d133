"""Commands that print lists: presets, tables and their columns, trained runs, settings of runs.

They change nothing.
"""
