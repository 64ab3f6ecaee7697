"""The law of this file: the site is the pages as they stand, strict, and whole without a network.

Sphinx, because it is well kept and has read docstrings for long; MyST, because the pages are
Markdown that is read in the repository too; Furo, because it fits a phone and loads nothing from
another host. `make docs` builds it, and a warning is an error.
"""

from __future__ import annotations

import re
from importlib.metadata import version as version_of
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "surefoot"
author = "surefoot contributors"
version = release = version_of("surefoot")
copyright = ""  # noqa: A001 - Sphinx's name for it

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown"}
smartquotes = False
default_role = "code"  # docstrings write names as Markdown does
myst_heading_anchors = 4
myst_links_external_new_tab = False
suppress_warnings: list[str] = []

autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "separated"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 60
maximum_signature_line_length = 60
add_module_names = False
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = "surefoot"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_theme_options = {"navigation_with_keys": False}
pygments_style = "default"
pygments_dark_style = "github-dark"

_FENCE: Final = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\s*$")
_TICKED: Final = re.compile(r"(?<!`)`([^`\n]+)`(?![`_])")
_STAR: Final = re.compile(r"(?<=[-/_])\*")
_ERRORS: Final = re.compile(r"^Raises \((?P<when>[^)]*)\):$")


def _from_markdown(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Turn fences and ticks of a docstring into what Sphinx reads, before its sections are read."""
    del app, what, name, obj, options
    written: list[str] = []
    inside = ""
    for line in lines:
        fence = _FENCE.match(line)
        if fence is None:
            when = _ERRORS.match(line)
            plain = "Raises:" if when else _STAR.sub(r"\\*", _TICKED.sub(r"``\1``", line))
            written.append(f"    {line}" if inside else plain)
        elif inside:
            inside = ""
            written.append("")
        else:
            inside = fence["language"] or "text"
            written += ["", f"{fence['indent']}.. code-block:: {inside}", ""]
    lines[:] = written


def setup(app: Sphinx) -> None:
    """Hang the translation before napoleon's own."""
    app.connect("autodoc-process-docstring", _from_markdown, priority=100)
