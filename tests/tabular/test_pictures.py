"""``model.plot``: held-out rows, new rows and columns as figures."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression

import accord
from accord.workflows import FitResult

KINDS = ("predictions", "calibration", "distance", "uncertainty", "errors", "residuals")


@pytest.fixture(scope="module")
def model(fitted: FitResult) -> accord.TableRegressor:
    return fitted.model


def test_the_overview_has_four_figures_and_names_the_target(model: accord.TableRegressor) -> None:
    axes = model.plot().axes
    assert len(axes) == 4
    assert axes[0].get_ylabel() == "price"


def test_the_held_out_rows_are_drawn(model: accord.TableRegressor) -> None:
    """The curve is that of the assessment, and the share written is its coverage."""
    curve = model.held_out_.reliability()
    line = model.plot("calibration").axes[0].lines[0]
    assert_allclose(line.get_xydata(), np.stack([curve.expected, curve.observed], axis=1))
    words = [text.get_text() for text in model.plot("predictions").axes[0].texts]
    assert any(f"{100 * model.held_out_.covered:.1f} %" in text for text in words)


@pytest.mark.parametrize("kind", KINDS)
def test_axes_of_ones_own_are_drawn_into(model: accord.TableRegressor, kind: str) -> None:
    figure, (ax,) = accord.plots.figure()
    assert model.plot(kind, ax=ax) is figure  # type: ignore[arg-type]
    assert ax.has_data()


def test_a_dependence_is_that_of_the_report(fitted: FitResult) -> None:
    curve = next(curve for curve in fitted.dependence if curve.column == "area")
    line = fitted.model.plot("dependence", column="area").axes[0].lines[0]
    assert_allclose(line.get_xydata(), np.stack([curve.at, curve.mean], axis=1))


def test_a_loaded_model_needs_rows(model_file: Path, houses: pd.DataFrame) -> None:
    loaded = accord.load(model_file)
    with pytest.raises(ValueError, match="a model file does not hold"):
        loaded.plot()
    known = houses.dropna(subset="price")
    by_name = loaded.plot("residuals", houses).axes[0]
    by_value = loaded.plot("residuals", known.drop(columns="price"), known["price"]).axes[0]
    offsets = [ax.collections[0].get_offsets() for ax in (by_name, by_value)]
    assert_allclose(*offsets)
    assert_allclose(offsets[0][:, 1].sum(), (known["price"] - loaded.predict(known)).sum())


def test_mistakes_are_named(model: accord.TableRegressor) -> None:
    with pytest.raises(ValueError, match="kind must be one of 'overview'"):
        model.plot("pie")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="needs a column"):
        model.plot("dependence")
    with pytest.raises(ValueError, match="'aera' is not in the model"):
        model.plot("dependence", column="aera")
    with pytest.raises(TypeError, match="which has four axes"):
        model.plot(ax=accord.plots.figure()[1][0])


def test_every_estimator_plots_rows_that_it_is_given() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = pd.Series(X[:, 0] + 0.1 * rng.normal(size=120), name="length")
    network = accord.BVMRegressor(n_members=2, epochs=2, random_state=0).fit(X[:80], y[:80])
    guarded = accord.guard(LinearRegression(), random_state=0).fit(X[:80], y[:80])
    for made in (network, guarded):
        assert made.plot("overview", X[80:], y[80:]).axes[0].get_ylabel() == "length"
        assert made.plot("errors", X[80:], y[80:]).axes[0].has_data()
        with pytest.raises(TypeError, match="plot needs X and y"):
            made.plot()
        with pytest.raises(ValueError, match="kind must be one of"):
            made.plot("distance", X[80:], y[80:])


def test_a_notebook_shows_the_figure(model: accord.TableRegressor) -> None:
    page = model.plot("calibration")._repr_html_()  # type: ignore[attr-defined]
    assert page.startswith("<svg")
    assert "expected coverage" in page
