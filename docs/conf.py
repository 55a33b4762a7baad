"""The documentation site: `make docs` builds it, offline, into docs/_build. Reference is made from the code."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from reference_pages import write_all  # noqa: E402

from reveil.base.version import __version__  # noqa: E402

project, author, release = "Reveil", "the Reveil team", __version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme = "furo"
html_title = "Reveil"
html_static_path = html_css_files = ["site.css"]
exclude_patterns = ["_build"]
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
autodoc_typehints = "none"
nitpicky = False
suppress_warnings = ["myst.xref_missing"]  # links to files of the source, which the tests check
write_all(HERE / "reference")
