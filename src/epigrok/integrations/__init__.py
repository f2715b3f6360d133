"""Adapters to other people's training loops: one module per framework, a few lines each.

Here belongs what a framework must be told so that a part of this package works in it; the part
itself knows no framework. Importing a module of this room imports its framework, so nothing else
in the package imports one, and each framework is an extra of the same name.
"""
