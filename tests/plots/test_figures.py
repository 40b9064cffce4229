"""Figures as SVG and PNG: deterministic, self-contained, in the page's own ink."""

import os
import re
import subprocess
import sys
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.image import imread

from accord import plots
from accord.plots import style
from accord.plots.style import INK, PALETTE, plain_log_axis


def drawn():
    fig, (left, right) = plots.figure(1, 2, titles=("ours", "theirs"))
    for ax, shift in ((left, 0.0), (right, 1.0)):
        plots.envelope(
            x=[0, 1, 2], mean=[0, shift, 1], std=[1, 1, 1], x_data=[1], y_data=[1], ax=ax
        )
    return fig


def test_svg_is_one_element_with_text_as_text() -> None:
    root = ElementTree.fromstring(plots.to_svg(drawn(), alt='two "bands" & a line'))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.get("role") == "img"
    assert root.get("aria-label") == 'two "bands" & a line'
    texts = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"ours", "theirs", "predicted mean"} <= texts
    assert not list(root.iter("{http://www.w3.org/2000/svg}metadata"))


def test_letters_that_the_font_lacks_are_left_to_the_page() -> None:
    fig, _ = plots.figure(titles=("東京",))
    assert "東京" in plots.to_svg(fig)  # and no warning, which would be an error here


def test_svg_follows_the_page() -> None:
    svg = plots.to_svg(drawn())
    assert INK not in svg
    assert "currentColor" in svg
    # No style sheet that would reach beyond the figure, no background that would hide the page.
    assert "<style" not in svg
    assert "#ffffff" not in svg


def test_svg_is_deterministic_and_made_without_pyplot() -> None:
    once = plots.to_svg(drawn())
    assert once == plots.to_svg(drawn())
    code = (
        "import sys; from accord import plots; print('matplotlib' in sys.modules)\n"
        "from test_figures import drawn; svg = plots.to_svg(drawn())\n"
        "print('matplotlib.pyplot' in sys.modules); print(svg)"
    )
    place = {"PYTHONPATH": str(Path(__file__).parent), "PYTHONHASHSEED": "7"}
    out = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **place},
    )
    at_import, pyplot, svg = out.stdout.split("\n", 2)
    assert at_import == "False"
    assert pyplot == "False"
    assert svg.strip() == once


def test_a_page_gets_one_drawing_and_the_figure_stays_as_it_was(monkeypatch) -> None:
    from matplotlib.figure import Figure

    fig = Figure(facecolor="white")
    fig.subplots().plot([0, 1], [0, 1])
    canvas, draws, draw = fig.canvas, [], Figure.draw
    monkeypatch.setattr(Figure, "draw", lambda self, to: (draws.append(to), draw(self, to)))
    assert "#ffffff" not in plots.to_svg(fig)
    assert len(draws) == 1
    assert fig.canvas is canvas
    assert fig.patch.get_visible()


def labelled(fig):
    """The axes with their labels, in shares of the figure, as they are in its SVG."""
    plots.to_svg(fig)
    FigureCanvasSVG(fig)  # which measures text as SVG does
    fig.dpi = 72
    return fig.axes[0].get_tightbbox().transformed(fig.transFigure.inverted())


@pytest.mark.parametrize("values", [[0.0, 1.0], [-4_321_987.0, 9_876_543.0]])
def test_labels_stay_inside_the_figure(values) -> None:
    fig, (ax,) = plots.figure(width=4.0, height=2.5, titles=["a title"])
    ax.plot(values, values, label="something")
    ax.set(xlabel="across", ylabel="up")
    style.number_axis(ax.yaxis)
    style.legend_below(ax)
    outer = labelled(fig)
    assert min(outer.x0, outer.y0) > 0
    assert max(outer.x1, outer.y1) < 1
    assert ax.get_position().width > 0.6


def test_an_axis_of_categories_is_laid_out() -> None:
    fig, (ax,) = plots.figure(width=4.0, height=2.5)
    ax.barh(["a rather long name", "b"], [1.0, 2.0])
    assert 0 < labelled(fig).x0 < 0.05


def test_square_axes_keep_their_labels() -> None:
    fig, (ax,) = plots.figure(width=4.9, height=5.2)
    ax.set(aspect="equal", xlim=(0, 1), ylim=(0, 1), xlabel="across", ylabel="up")
    outer = labelled(fig)
    assert min(outer.x0, outer.y0) > 0
    assert max(outer.x1, outer.y1) < 1


def test_long_numbers_do_not_meet() -> None:
    fig, (ax,) = plots.figure(width=4.2, height=2.9)
    ax.plot([100_000, 100_420], [0, 1])
    style.number_axis(ax.xaxis)
    plots.to_svg(fig)
    boxes = [label.get_window_extent() for label in ax.get_xticklabels()]
    assert len(boxes) > 2
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_ids_of_figures_do_not_clash() -> None:
    one, other = plots.to_svg(drawn()), plots.to_svg(plots.figure()[0])
    ids = [set(re.findall(r'\bid="([^"]+)"', svg)) for svg in (one, other)]
    assert ids[0]
    assert not ids[0] & ids[1]


def test_every_reference_is_defined() -> None:
    svg = plots.to_svg(drawn())
    ids = set(re.findall(r'\bid="([^"]+)"', svg))
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', svg))
    assert used
    assert used <= ids


def test_saving_by_ending(tmp_path) -> None:
    fig = drawn()
    picture = plots.save(fig, tmp_path / "picture.png", dpi=50)
    assert picture.read_bytes() == plots.to_png(fig, dpi=50)
    assert picture.read_bytes().startswith(b"\x89PNG")
    vector = plots.save(fig, tmp_path / "picture.SVG", alt="bands").read_text(encoding="utf-8")
    ElementTree.fromstring(vector)
    assert "prefers-color-scheme" in vector
    with pytest.raises(ValueError, match=r"path must end in .svg or .png, got 'picture.pdf'"):
        plots.save(fig, tmp_path / "picture.pdf")


def test_png_is_on_white() -> None:
    fig, _ = plots.figure(width=2, height=1)
    corner = imread(BytesIO(plots.to_png(fig, dpi=50)))[0, 0]
    np.testing.assert_allclose(corner, [1, 1, 1, 1])


def test_a_callers_axes_keep_the_callers_ink() -> None:
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    ax.xaxis.label.set_color("white")
    returned = plots.envelope(x=[0, 1], mean=[0, 1], std=[1, 1], x_data=[0], y_data=[0], ax=ax)
    assert returned is ax
    data = next(line for line in ax.get_lines() if line.get_label() == "data")
    assert data.get_color() == "white"


# Machado, Oliveira and Fernandes (2009), complete deficiency, in linear RGB.
DEFICIENCIES = {
    "protan": [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]],
    "deutan": [[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]],
    "tritan": [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_colours_are_told_apart_by_colour_blind_readers(deficiency) -> None:
    rgb = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in PALETTE]) / 255
    linear = ((rgb + 0.055) / 1.055) ** 2.4
    seen = np.clip(linear @ np.transpose(DEFICIENCIES[deficiency]), 0, 1)
    x, y, z = np.cbrt(seen @ TO_XYZ.T / TO_XYZ.sum(axis=1)).T
    lab = np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1)
    distance = np.linalg.norm(lab[:, None] - lab, axis=-1)
    assert distance[np.triu_indices(len(lab), 1)].min() > 12  # about 2 is just noticeable


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"rows": 0}, ValueError, "rows must be at least 1"),
        ({"cols": 1.5}, TypeError, "cols must be an integer"),
        ({"width": -1}, ValueError, "width must be positive"),
        ({"titles": ("a", "b")}, ValueError, "titles must not outnumber the 1 axes, got 2"),
    ],
)
def test_bad_figures(options, error, message) -> None:
    with pytest.raises(error, match=message):
        plots.figure(**options)


def test_ticks_of_a_short_logarithmic_axis_differ() -> None:
    ax = Figure().subplots()
    ax.set_xscale("log")
    ax.set_xlim(0.345, 0.372)
    plain_log_axis(ax.xaxis)
    labels = [ax.xaxis.get_major_formatter()(tick) for tick in ax.get_xticks()]
    assert len(labels) > 2
    assert len(set(labels)) == len(labels)
