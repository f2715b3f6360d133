"""Runs and figures -> one self-contained page."""

from epigrok.report.page import write_report

__all__ = ["write_report"]
