"""The one place for looks: colours, sizes, how axes are dressed; and figures without pyplot.

Colours are those of Okabe and Ito, which colour-blind readers can distinguish, legible on white and
on black. Text, axes and reference lines are drawn in one ink, which `to_svg` hands to the page
(``currentColor``), so that a figure follows its light or dark mode.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from functools import cache
from io import BytesIO, StringIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings
from xml.sax.saxutils import escape

import numpy as np

from accord._checks import check_count, check_positive
from accord._files import write_whole
from accord._wording import number, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import LayoutEngine
    from matplotlib.typing import ColorType

    from accord._types import Indices


INK = "#22272e"
BLUE, VERMILLION, GREEN = "#0072b2", "#d55e00", "#009e73"
PURPLE, ORANGE, SKY = "#cc79a7", "#e69f00", "#56b4e9"

# Methods differ in marker and dash too, so that colour alone never carries the meaning.
PALETTE = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY)
MARKERS = ("o", "s", "^", "D", "v", "P")
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)))

DASHED = (0, (4, 3))

WIDTH = 7.2
# Points of a cloud beyond this number say nothing more.
DRAWN = 800
TEXT, SMALL = 10.0, 9.0

# matplotlib types the keys of rc_context as a closed list, which a plain dict does not match.
RC: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": TEXT,
    "axes.labelsize": TEXT,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
}


def method_look(index: int) -> dict[str, Any]:
    """Colour and marker of the method at a place in the legend; the same in every figure."""
    return {
        "color": PALETTE[index % len(PALETTE)],
        "marker": MARKERS[index % len(MARKERS)],
    }


def scatter_look(n: int) -> dict[str, Any]:
    """Small points, fainter the more there are."""
    return {"s": 14, "lw": 0, "alpha": float(min(0.8, max(0.3, 14 / n**0.5)))}


def evenly(n: int, at_most: int = DRAWN) -> "Indices":
    """Places of at most so many of n things, spread evenly: more points make a file large."""
    return np.unique(np.linspace(0, n - 1, min(at_most, n)).round().astype(np.intp))


def some_of(order: "Indices", at_most: int) -> "Indices":
    """At most so many of some rows, spread evenly over their order."""
    return np.asarray(order[evenly(len(order), at_most)])


def style_axes(ax: "Axes", title: str = "") -> "Axes":
    """Quiet axes: hairline spines and ticks, a faint grid behind the data, title on the left."""
    for side in ("left", "bottom"):
        ax.spines[side].set(alpha=0.55, linewidth=0.8)
    ax.tick_params(length=3, width=0.8, color=(INK, 0.55))
    ax.grid(color=INK, alpha=0.12, linewidth=0.7)
    if title:
        ax.set_title(title, loc="left", fontsize=TEXT + 1, fontweight="bold", pad=8)
    return ax


def ink(ax: "Axes") -> "ColorType":
    """The colour that these axes write in; on a caller's own axes that is the caller's."""
    return ax.xaxis.label.get_color()


def legend(ax: "Axes", **place: Any) -> None:
    """A frameless legend in the axes' ink."""
    ax.legend(
        frameon=False,
        fontsize=SMALL,
        title_fontsize=SMALL,
        labelcolor=ink(ax),
        handlelength=1.8,
        borderpad=0.2,
        **place,
    )


def legend_below(ax: "Axes", *, columns: int = 1) -> None:
    """A legend under the axes and their label, where it hides no data however narrow they are."""
    from matplotlib.transforms import ScaledTranslation

    under_label = ScaledTranslation(0, -38 / 72, ax.figure.dpi_scale_trans)
    legend(
        ax,
        loc="upper left",
        bbox_to_anchor=(0.0, 0.0),
        bbox_transform=ax.transAxes + under_label,
        borderaxespad=0.0,
        ncols=columns,
        columnspacing=1.5,
    )


def note(ax: "Axes", x: float, y: float, text: str, **options: Any) -> None:
    """A small remark at a place given in shares of the axes."""
    look = {"alpha": 0.75, "va": "top", "ha": "left", "fontsize": SMALL, **options}
    ax.text(x, y, text, transform=ax.transAxes, color=ink(ax), **look)


def plain(text: str, *, limit: int = 40) -> str:
    """Text as matplotlib shows it letter by letter: a dollar sign starts no formula."""
    short = text if len(text) <= limit else text[: limit - 1] + "…"
    printable = "".join(c if c.isprintable() else "�" for c in short)
    return printable.replace("\\", "\\\\").replace("$", r"\$")


def number_axis(axis: "Axis") -> None:
    """Numbers along an axis as text writes them: 76,800 and not 7.68 beside a factor of 1e4."""
    from matplotlib.axis import XAxis
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value, 4)))
    if isinstance(axis, XAxis):  # side by side, numbers like 150,000 need room
        axis.set_major_locator(MaxNLocator(5))


def plain_log_axis(axis: "Axis") -> None:
    """Numbers along a logarithmic axis as text writes them, also where it spans less than ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value, 4)))
    axis.set_minor_formatter(NullFormatter())


def date_axis(axis: "Axis", *, ticks: int = 5) -> None:
    """Dates along an axis (days since 1970, or numpy's), as briefly as they can be written."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(minticks=2, maxticks=ticks)  # type: ignore[no-untyped-call]
    axis.set_major_locator(locator)
    axis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def percent_axis(axis: "Axis") -> None:
    """Shares of one written as percentages along an axis."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda share, _: percent(share)))


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
    return fig, [style_axes(ax, title) for ax, title in zip(axes.flat, named, strict=True)]


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
    # Letters that matplotlib's font lacks: the text stays text, and the reader's browser has them.
    with rc_context({**RC, "svg.fonttype": "none", "svg.hashsalt": "accord"}), catch_warnings():
        filterwarnings("ignore", r"Glyph .* missing from font")
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
