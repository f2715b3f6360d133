"""Runs and figures -> one self-contained page.

What it says of runs in words and tables is made here; its images come from `figures`, its numbers
from `tables`.
"""

from epigrok.extras import extra_named

with extra_named():
    from epigrok.report.page import write_report

__all__ = ["write_report"]
