"""IVON and the monitor in other people's training loops: one module per framework.

Only what a framework needs belongs here; IVON lives in `posteriors`, the monitor in `monitor`, and
neither knows a framework. Importing a module of this room imports its framework, so no other room
imports one.
"""
