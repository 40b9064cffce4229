"""The documentation site: Markdown pages, examples that are run, and a generated reference."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_extensions"), str(HERE.parent / "src")]
# One thread, as in the tests: small networks are no faster with more.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy.typing  # noqa: E402
import pandas as pd  # noqa: E402

# The reference names these as users do: numpy's union has a dozen private parts, and pandas 2 tells
# in which file its frames are defined.
numpy.typing.ArrayLike = type("ArrayLike", (), {"__module__": "numpy.typing"})
pd.DataFrame.__module__ = pd.Series.__module__ = "pandas"

from accord import __version__  # noqa: E402

project = "Accord"
author = "The Accord developers"
copyright = author
version = release = __version__
# "--" in an option is not a dash
smartquotes = False

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
    "reference_pages",
    "command_pages",
    "mathml",
    "links",
    "sphinx.ext.intersphinx",
]
exclude_patterns = ["_build", "_extensions", "examples", "inventories"]
# Attributes of one name in several classes: docstrings mean the one of their own class.
suppress_warnings = ["ref.python"]

# formulas stand in indented blocks
highlight_language = "text"
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autosummary_generate = False
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
python_use_unqualified_type_names = True
python_display_short_literal_types = True
maximum_signature_line_length = 80

sphinx_gallery_conf = {
    "examples_dirs": ["examples/howto", "examples/gallery"],
    "gallery_dirs": ["_generated/howto", "_generated/gallery"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "thumbnail_size": (400, 280),
    "capture_repr": (),  # what is printed is shown, not what the last line returns
    "show_signature": False,
    "image_scrapers": ("figures.scrape",),
    "reset_modules": (),
}

# Links to other projects, for the names that the reference has, need no network: the addresses are
# in a folder of this one. With ACCORD_DOCS_ONLINE the projects' own inventories are asked.
_PROJECTS = {
    "python": "https://docs.python.org/3",
    "numpy": "https://numpy.org/doc/stable",
    "pandas": "https://pandas.pydata.org/docs",
    "sklearn": "https://scikit-learn.org/stable",
    "torch": "https://docs.pytorch.org/docs/stable",
}
_ONLINE = (None,) if os.environ.get("ACCORD_DOCS_ONLINE") else ()
intersphinx_timeout = 10
intersphinx_mapping = {
    name: (address, (*_ONLINE, f"inventories/{name}.txt")) for name, address in _PROJECTS.items()
}

html_theme = "furo"
html_title = f"Accord {__version__}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
