"""How an example's figures reach its page: ``accord.plots`` draws outside pyplot."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

from accord.plots import to_png

_DOTS_PER_INCH = 130


def scrape(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the figures that a block has put into a variable, each once."""
    paths = []
    for figure in _figures(block_vars["example_globals"]):
        if not getattr(figure, "is_on_page", False):
            figure.is_on_page = True
            path = str(next(block_vars["image_path_iterator"]))
            with open(path, "wb") as file:
                file.write(to_png(figure, dpi=_DOTS_PER_INCH))
            paths.append(path)
    return str(figure_rst(paths, gallery_conf["src_dir"]))


def _figures(names: dict[str, Any]) -> list[Any]:
    found = [value.figure for value in names.values() if isinstance(value, Axes)]
    return [*found, *(value for value in names.values() if isinstance(value, Figure))]
