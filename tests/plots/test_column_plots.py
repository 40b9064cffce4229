"""Plots against one quantity, and methods in a plane."""

import numpy as np
import pytest

from accord import plots

X = np.linspace(0.0, 1.0, 120)


def test_residuals_show_the_mean_error_of_groups() -> None:
    error = np.where(X < 0.5, -1.0, 1.0)
    ax = plots.residuals(against=X, residual=error, xlabel="time", n_groups=4)
    line = ax.containers[0].lines[0]
    np.testing.assert_allclose(line.get_ydata(), [-1, -1, 1, 1])
    assert ax.get_xlabel() == "time"


def test_residuals_leave_out_rows_without_a_place() -> None:
    against = X.copy()
    against[:20] = np.nan
    ax = plots.residuals(against=against, residual=X, xlabel="time")
    assert len(ax.collections[0].get_offsets()) == 100


def test_a_curve_has_its_bands() -> None:
    ax = plots.dependence_curve(at=X, mean=X, lower=X - 3, upper=X + 3, unknown=0 * X + 0.5)
    outer, inner = (band.get_paths()[0].vertices[:, 1] for band in ax.collections)
    assert (outer.min(), outer.max()) == (-3, 4)
    assert (inner.min(), inner.max()) == (-1, 2)


def test_categories_and_dates_are_named() -> None:
    three = np.arange(3.0)
    ax = plots.dependence_curve(
        at=three, mean=three, lower=three, upper=three, unknown=three, labels=["a", "b", "c"]
    )
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "b", "c"]
    days = 86_400 * 366 * np.arange(3.0)
    ax = plots.dependence_curve(
        at=days, mean=three, lower=three, upper=three, unknown=three, dates=True
    )
    ax.figure.draw_without_rendering()
    years = {label.get_text() for label in ax.get_xticklabels()}
    assert {"1970", "1971", "1972"} & years


def test_a_plane_of_methods() -> None:
    ax = plots.trade_off(
        {"a": (1.0, 0.9), "b": (100.0, 0.95)}, xlabel="s", ylabel="c", aim=0.95, log_x=True
    )
    assert ax.get_xscale() == "log"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["stated", "a", "b"]
    with pytest.raises(ValueError, match="points"):
        plots.trade_off({"a": (np.nan, 1.0)}, xlabel="s", ylabel="c")
