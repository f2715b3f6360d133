"""Runs and figures -> one self-contained page.

What it says of runs in words and tables is made here; its images come from `figures`, its numbers
from `tables`. The page is loaded on first use, because the words of the report need no figures.
"""

from typing import TYPE_CHECKING

from epigrok.lazy_names import loader

if TYPE_CHECKING:
    from epigrok.report.page import write_report

__all__ = ["write_report"]

__getattr__ = loader(__name__, {"write_report": "page"})
