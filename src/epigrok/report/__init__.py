"""Runs and figures -> one self-contained page."""

from epigrok.extras import extra_named

with extra_named():
    from epigrok.report.page import write_report

__all__ = ["write_report"]
