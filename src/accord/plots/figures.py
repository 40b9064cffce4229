"""Figures without pyplot: made, turned into SVG for a page, saved as SVG or PNG."""

import hashlib
import re
from collections.abc import Callable, Sequence
from functools import cache
from io import BytesIO, StringIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from accord._checks import check_count, check_positive
from accord._files import write_whole
from accord.plots.style import INK, RC, WIDTH, dress

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import LayoutEngine


# Inches around the labels.
_MARGIN = 0.042
_FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
# A file on its own has no page to take its ink from.
_FILE_STYLE = (
    "<style>svg{color:#22272e}@media(prefers-color-scheme:dark){svg{color:#e6edf3}}</style>"
)


def figure(
    rows: int = 1,
    cols: int = 1,
    *,
    width: float = WIDTH,
    height: float | None = None,
    titles: Sequence[str] = (),
) -> tuple["Figure", list["Axes"]]:
    """A transparent figure and its axes, row by row, in the house style.

    ``width`` and ``height`` are inches of the whole figure; ``titles`` go over the axes in their
    order. Nothing is registered with pyplot, so there is nothing to close.

    >>> fig, (left, right) = figure(1, 2, titles=("ours", "theirs"))
    >>> left.get_title(loc="left")
    'ours'
    """
    from matplotlib import rc_context

    if len(titles) > rows * cols:
        raise ValueError(
            f"titles must not outnumber the {rows * cols} axes, got {len(titles)}. Leave some out."
        )
    check_count("rows", rows)
    check_count("cols", cols)
    check_positive("width", width)
    slope = 0.55 if cols == 1 else 0.85
    size = (width, height if height is not None else slope * width / cols * rows + 0.4)
    check_positive("height", size[1])
    with rc_context(RC):
        fig = _figure_class()(figsize=size, layout="constrained")
        if rows * cols == 1:
            fig.set_layout_engine(_tight_layout()())
        axes = fig.subplots(rows, cols, squeeze=False)
    named = [*titles, *[""] * (rows * cols - len(titles))]
    return fig, [dress(ax, title) for ax, title in zip(axes.flat, named, strict=True)]


@cache
def _figure_class() -> type["Figure"]:
    """Figures that a notebook shows without pyplot, in its own light or dark ink."""
    from matplotlib.figure import Figure

    class NotebookFigure(Figure):
        def _repr_html_(self) -> str:
            return to_svg(self)

    return NotebookFigure


@cache
def _tight_layout() -> type["LayoutEngine"]:
    """One pair of axes as large as its labels allow.

    Labels are measured once, and again only if the new size has other ticks. The constrained
    layout, which is for several pairs, measures everything twice.
    """
    from matplotlib.layout_engine import LayoutEngine

    class TightLayout(LayoutEngine):
        _adjust_compatible = False
        _colorbar_gridspec = False

        def execute(self, fig: "Figure") -> None:
            for ax in fig.axes:
                before = _ticks(ax)
                _fill(fig, ax)
                if _ticks(ax) != before:
                    _fill(fig, ax)

    return TightLayout


def _ticks(ax: "Axes") -> list[list[float]]:
    # those of categories are a list, all others an array
    return [list(ax.get_xticks()), list(ax.get_yticks())]


def _fill(fig: "Figure", ax: "Axes") -> None:
    """Let the axes and their labels reach from margin to margin."""
    outer = ax.get_tightbbox(for_layout_only=True)
    if outer is None:
        return
    inner = ax.get_position()  # as measured, which a fixed aspect has made smaller
    outer = outer.transformed(fig.transFigure.inverted())
    across, up = _MARGIN / fig.get_figwidth(), _MARGIN / fig.get_figheight()
    left, bottom = inner.x0 - outer.x0 + across, inner.y0 - outer.y0 + up
    right, top = 1 - across - (outer.x1 - inner.x1), 1 - up - (outer.y1 - inner.y1)
    ax.set_position((left, bottom, max(right - left, 0.1), max(top - bottom, 0.1)))


def axes_or_new(ax: "Axes | None", *, width: float = WIDTH, height: float = 4.0) -> "Axes":
    """The caller's axes, or those of a new figure (``ax.figure``)."""
    return ax if ax is not None else figure(width=width, height=height)[1][0]


def to_svg(fig: "Figure", *, alt: str = "") -> str:
    """The figure as an ``<svg>`` element for a page: text stays text, ink follows the page.

    The same figure gives the same string. Every id starts with a mark of the content, so that
    several figures share a page; ``alt`` describes the figure to a screen reader.

    >>> fig, _ = figure()
    >>> to_svg(fig, alt="empty axes")[:4]
    '<svg'
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    stream, shown_on, patches = StringIO(), fig.canvas, [fig.patch, *(ax.patch for ax in fig.axes)]
    looks = [patch.get_visible() for patch in patches]
    # The canvas itself writes the file: savefig would draw everything once more before.
    with rc_context({**RC, "svg.fonttype": "none", "svg.hashsalt": "accord"}):
        try:
            for patch in patches:
                patch.set_visible(False)
            write: Callable[..., None] = FigureCanvasSVG(fig).print_svg  # untyped there
            write(stream, metadata={"Date": None})
        finally:
            fig.set_canvas(shown_on)
            for patch, look in zip(patches, looks, strict=True):
                patch.set_visible(look)
    return _for_page(stream.getvalue(), alt)


def to_png(fig: "Figure", *, dpi: float = 150) -> bytes:
    """The figure as PNG, on white."""
    from matplotlib import rc_context

    check_positive("dpi", dpi)
    stream = BytesIO()
    with rc_context(RC):
        # No software version in the file: the same figure gives the same bytes.
        fig.savefig(stream, format="png", dpi=dpi, facecolor="white", metadata={"Software": None})
    return stream.getvalue()


def save(fig: "Figure", path: str | PathLike[str], *, alt: str = "", dpi: float = 150) -> Path:
    """Write the figure as SVG or PNG, by the ending of ``path``.

    The SVG follows the reader's light or dark mode; the PNG is on white.
    """
    target = Path(path)
    if target.suffix.lower() == ".svg":
        head, body = to_svg(fig, alt=alt).split(">", 1)
        write_whole(target, f"{head}>{_FILE_STYLE}{body}\n")
    elif target.suffix.lower() == ".png":
        write_whole(target, to_png(fig, dpi=dpi))
    else:
        raise ValueError(
            f"path must end in .svg or .png, got {target.name!r}. Name the format by the ending."
        )
    return target


def _for_page(svg: str, alt: str) -> str:
    """Matplotlib's file as an element: no prolog, metadata or global style; own ids, page's ink."""
    body = svg[svg.index("<svg") :].strip()
    body = re.sub(r"\s*<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r"\s*<defs>\s*<style.*?</style>\s*</defs>", "", body, flags=re.DOTALL)
    body = body.replace(INK, "currentColor")
    body = re.sub(r"'DejaVu Sans'(, [^;\"]*)?", _FONTS, body)
    mark = f"f{hashlib.sha256(body.encode()).hexdigest()[:8]}-"
    body = re.sub(r'\bid="', f'id="{mark}', body)
    body = re.sub(r'(href="|url\()#', rf"\g<1>#{mark}", body)
    head, rest = body.split(">", 1)
    head = re.sub(r'\s(width|height)="([\d.]+)pt"', "", head)
    width = re.search(r'viewBox="0 0 ([\d.]+)', head)
    size = f"width:{float(width.group(1)):g}pt;" if width else ""
    named = f'aria-label="{escape(alt, {chr(34): "&quot;"})}"' if alt else 'aria-hidden="true"'
    look = f"{size}max-width:100%;height:auto"
    # whatever states no colour is ink, too
    ink = 'fill="currentColor" stroke-linejoin="round"'
    return f'{head} role="img" {named} {ink} style="{look}">{rest}'
