"""How `make docs` builds the site: Markdown pages, docstrings, help texts; no network anywhere."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

from epigrok import __version__  # noqa: E402  (the extensions beside this file come first)

project = "epigrok"
author = "The epigrok developers"
copyright = "2026, the epigrok developers"
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "mathml",
    "command_reference",
    "docstrings",
]
exclude_patterns = ["_ext"]
source_suffix = {".md": "markdown"}

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4

autodoc_typehints = "description"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autodoc_class_signature = "mixed"
autoclass_content = "both"
python_use_unqualified_type_names = True
# `Names` in docstrings are code, as in Markdown.
default_role = "code"
# References to our own names must exist; those of other libraries lead nowhere without a network.
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(torch|numpy|np|jaxtyping|matplotlib|duckdb|lightning|transformers)\..*"),
    ("py:.*", r"(collections|pathlib|typing|abc)\..*"),
    ("py:.*", r"(Tensor|Float|Int|Bool|Path|nn\.Module|ndarray|optional|Suppress|.*Dataset)"),
    ("py:.*", r"['\"].*"),
    ("py:.*", r"contextlib\..*"),
    ("py:.*", r"epigrok\..*\._\w+"),
    # Types that nobody names: what is public of them is said where they are returned.
    ("py:class", r".*\.(Column|PosteriorKind|DropoutSample|ExactCurvature|Mean|HasDirectory)"),
    ("py:class", r"epigrok\..*\.(TrainOptions|Reporter|RunDirectory)"),
]

html_theme = "furo"
pygments_dark_style = "github-dark"
# Excerpts would be fetched, which browsers refuse to a page on a disk; titles need no request.
html_show_search_summary = False
html_title = "epigrok"
html_static_path = ["_static"]
html_css_files = ["epigrok.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
