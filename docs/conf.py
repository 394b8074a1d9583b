"""Settings of Sphinx, which makes the site: `make docs`. docs/site.py puts the pages together first."""

import tamis

project = "Tamis"
release = version = tamis.__version__
copyright = ""
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]

html_theme = "furo"
html_title = f"Tamis {release}"
html_show_sphinx = html_show_copyright = html_show_sourcelink = False
html_copy_source = False
html_static_path: list[str] = []

# Headings get the same links as on GitHub.
myst_heading_anchors = 4
myst_enable_extensions = ["deflist"]

# Single backquotes in docstrings are code.
default_role = "code"
napoleon_google_docstring = False
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True}
autodoc_preserve_defaults = True
maximum_signature_line_length = 100
python_use_unqualified_type_names = True
add_module_names = False

copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
