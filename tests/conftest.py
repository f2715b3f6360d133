"""Shapes and types in signatures are checked at run time, in tests only."""

from jaxtyping import install_import_hook

install_import_hook("epigrok", "run_time_checks.checked")
