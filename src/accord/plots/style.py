"""The one place for looks: colours, sizes, and how a set of axes is dressed.

Colours are those of Okabe and Ito, which colour-blind readers can distinguish, legible on white and
on black. Text, axes and reference lines are drawn in one ink, which `to_svg` hands to the page
(``currentColor``), so that a figure follows its light or dark mode.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from accord._wording import number, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
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


def dress(ax: "Axes", title: str = "") -> "Axes":
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
