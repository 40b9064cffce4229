"""The parts of models: each graph gives what its Python gives."""

import numpy as np
import pandas as pd
import pytest
from export_running import answers

from accord.distributions import Normal, RankCalibrated
from accord.export import Graph, content, state
from accord.portfolio.boosting import BoostingModel
from accord.portfolio.corrected import CorrectedModel
from accord.portfolio.encoding import FeatureEncoding, ScaledRows
from accord.portfolio.gaussian_process import GaussianProcessModel
from accord.portfolio.graph import _ranked
from accord.portfolio.recipes import (
    BoostingRecipe,
    CorrectedRecipe,
    GaussianProcessRecipe,
    NetworkRecipe,
    RidgeRecipe,
)
from accord.portfolio.ridge import RidgeModel
from accord.tables import (
    TableEncoder,
    TableInputs,
    conform,
    input_arrays,
    prepare_training,
    read_table,
)
from accord.trust import Growth, Proximity

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(size=120), RNG.integers(0, 4, 120), np.exp(RNG.normal(size=120))])
Z = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * RNG.normal(size=120)
ROWS = ScaledRows(X, Z, np.ones(120), {})
FOLDS = [np.arange(120)[:80], np.arange(120)[40:]]
ASKED = np.concatenate([X[:20], 3 * X[:20], np.full((1, 3), 1e9)])


@pytest.mark.parametrize(
    "model",
    [
        BoostingModel(BoostingRecipe(trees=20)),
        BoostingModel(BoostingRecipe(trees=3, smallest_leaf=60)),  # trees without a split
        GaussianProcessModel(GaussianProcessRecipe()),
        RidgeModel(RidgeRecipe("ridge", "a line")),
        RidgeModel(RidgeRecipe("additive", "more curves than rows", bins=60)),
        RidgeModel(RidgeRecipe("sparse", "by the lasso", sparse=True)),
    ],
    ids=["trees", "stumps", "Gaussian process", "ridge", "additive", "sparse"],
)
def test_models_that_are_no_networks(model, values_of) -> None:
    model.fit(ROWS, FOLDS, seed=0, listener=None)
    compare_curves(model, values_of, len(FOLDS))


def test_a_sparse_line_of_no_feature(values_of) -> None:
    rows = ScaledRows(X, RNG.normal(size=120), np.ones(120), {})
    model = RidgeModel(RidgeRecipe("sparse", "by the lasso", sparse=True))
    model.fit(rows, FOLDS, seed=0, listener=None)
    assert min(line.directions.shape[1] for line in model.lines_) == 0
    compare_curves(model, values_of, len(FOLDS))


def compare_curves(model, values_of, n: int) -> None:
    def curves(x):
        found = state(model, x)
        return found.mean, found.std

    mean, std = values_of(curves, ASKED, (n, n))
    expected = model.components(ASKED)
    np.testing.assert_allclose(mean.T, expected.mean[:, :, 0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(std.T, expected.std[:, :, 0], rtol=1e-7)


def test_posteriors_of_folds_that_share_a_kernel(values_of) -> None:
    x = RNG.normal(size=(300, 3))
    rows = ScaledRows(x, np.sin(2 * x[:, 0]), np.ones(300), {})
    folds = [np.arange(300)[:200], np.arange(300)[50:], np.arange(300)]
    model = GaussianProcessModel(GaussianProcessRecipe())
    compare_curves(model.fit(rows, folds, seed=0, listener=None), values_of, 3)


def test_corrected_processes(values_of) -> None:
    network = NetworkRecipe("errors", "", hidden=(8,), components=2, steps=50, seeds=2, scaled=1)
    model = CorrectedModel(CorrectedRecipe(GaussianProcessRecipe(), network))
    model.fit(ROWS, FOLDS, seed=0, listener=None)

    def curves(x):
        found = state(model, x)
        return found.weight, found.mean, found.std

    expected = model.components(ASKED)
    for found, own in zip(
        values_of(curves, ASKED, (8, 8, 8)),
        (expected.weight / 4, expected.mean, expected.std),
        strict=True,
    ):
        side_by_side = own.transpose(1, 0, 2).reshape(len(ASKED), 8)
        np.testing.assert_allclose(found, side_by_side, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("bins", [0, 5])
def test_encoding(bins: int, values_of) -> None:
    encoding = FeatureEncoding(bins=bins).fit(np.column_stack([X, np.ones(120)]))
    asked = np.column_stack([ASKED, np.ones(len(ASKED))])
    expected = encoding(asked)
    (found,) = values_of(lambda x: state(encoding, x), asked, (expected.shape[1],))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_edges_that_rounding_tells_apart_are_one() -> None:
    """A bin as narrow as rounding jumps by the last digit, which another machine has otherwise."""
    values = np.repeat([0.0, 0.1 + 0.2, 0.3, 0.9, 1.0], 8)[:, None]
    encoding = FeatureEncoding(bins=6).fit(values)
    assert encoding.width_.min() > 0.01
    one, other = encoding(np.array([[0.3], [0.1 + 0.2]]))
    np.testing.assert_allclose(one, other, atol=1e-12)


def test_encoding_of_nothing_that_varies(values_of) -> None:
    encoding = FeatureEncoding().fit(np.ones((5, 2)))
    (found,) = values_of(lambda x: state(encoding, x), np.ones((3, 2)))
    assert found.tolist() == [[0.0]] * 3


@pytest.mark.parametrize("features", [1, 3, 12])
def test_distances(features: int, values_of) -> None:
    """By a tree in Python, by a product in the graph; a known row is 0 from itself."""
    rows = np.random.default_rng(features).normal(size=(80, features))
    growth = Growth().fit(rows)
    asked = np.concatenate([rows[:5], 5 * rows[:5]])
    (found,) = values_of(lambda x: state(growth, x), asked)
    np.testing.assert_allclose(found[:, 0], growth(asked), rtol=1e-10)
    nearest = Proximity(n_neighbors=1).fit(rows)
    (zero,) = values_of(lambda x: state(nearest, x), rows[:5])
    assert np.all(zero == 0)


def test_ranks_move_levels_as_the_distribution_does() -> None:
    needed = np.sort(np.random.default_rng(0).uniform(size=30) ** 0.5)
    levels = np.array([0.001, 0.1, 0.5, 0.8, 0.999])
    tails, sign = _ranked(needed, levels)
    base = Normal([0.0], 1.0)
    moved = np.where(sign > 0, tails, 1 - tails)
    expected = RankCalibrated(base, needed).quantile(levels)
    np.testing.assert_allclose(np.asarray(base.quantile(moved)), expected, rtol=1e-9)


def table(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(n)
    moments = rng.integers(-(2**31), 2**32, n)
    frame = pd.DataFrame(
        {
            "size": rng.gamma(2, 30, n),
            "town": rng.choice(["Ulm", "Bonn", "Rome", "rare"], n, p=[0.4, 0.3, 0.28, 0.02]),
            "street": rng.choice([f"street {i}" for i in range(30)], n),
            "sold": pd.to_datetime(moments, unit="s"),
            "at": (pd.Timestamp("2020-01-01") + pd.to_timedelta(moments % 86_400, unit="s")).time,
            "new": rng.random(n) < 0.3,
            "floors": np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 9, n)),
        }
    )
    for column in ("town", "street", "sold", "at"):
        frame[column] = frame[column].astype(object).where(rng.random(n) > 0.05, None)
    frame["sold"] = pd.to_datetime(frame["sold"])
    return frame.assign(price=rng.normal(size=n))


def test_features_of_a_table(tmp_path) -> None:
    """Dates before and after 1970, leap days, gaps, rare and unknown categories."""
    data = prepare_training(read_table(table(400)), target="price")
    encoder = TableEncoder(data.schema, random_state=0).fit(data.X, data.y)
    new = table(100)
    leap = ["2000-02-29 12:00", "1968-02-29", "1900-12-31 23:59:59", "2100-03-01", "1970-01-01"]
    new.loc[:4, "sold"] = pd.to_datetime(leap, format="ISO8601")
    new.loc[5:7, "town"] = "Oslo"
    new.loc[6:8, "street"] = "nowhere"
    graph = Graph()
    features = state(encoder, TableInputs.of(graph, data.schema))
    graph.output("features", features, np.float64, width=len(encoder.kept_))
    (tmp_path / "t.onnx").write_bytes(content(graph, {}))
    source = read_table(new)
    found = answers(tmp_path / "t.onnx", input_arrays(source.data, data.schema))["features"]
    conformed = conform(source.data, data.schema, source=source.name)
    np.testing.assert_allclose(found, encoder.transform(conformed.X), atol=1e-9)
