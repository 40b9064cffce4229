"""Ensembles of a user's own torch module: images, series, files, and what is refused."""

import csv
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.ndimage import rotate
from sklearn.base import clone
from sklearn.datasets import load_digits
from torch import nn

import accord
from accord import ModuleRegressor
from accord.persistence import ModelFileError
from accord.training import DivergedError


def perceptron(n_outputs: int = 2) -> nn.Module:
    return nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, n_outputs))


def wider() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 17), nn.Tanh(), nn.Linear(17, 2))


def rows(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (n, 2))
    return x, 100 + 10 * x[:, 0] + rng.normal(size=n)


@pytest.fixture(scope="module")
def model() -> ModuleRegressor:
    return ModuleRegressor(perceptron, tolerance=1.5, epochs=5, random_state=0).fit(*rows())


def convolutional() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 32),
        nn.ReLU(),
        nn.Linear(32, 2),
    )


def test_a_convolutional_network_learns_by_how_much_digits_are_turned() -> None:
    rng = np.random.default_rng(0)
    images, digits = load_digits(return_X_y=True)
    images = images[digits == 7].reshape(-1, 8, 8)
    images = images[rng.integers(len(images), size=500)]
    angle = rng.uniform(-60, 60, len(images))
    turned = np.stack(
        [rotate(i, a, reshape=False, order=1) for i, a in zip(images, angle, strict=True)]
    )
    x = turned[:, None] / 16
    model = ModuleRegressor(
        convolutional, tolerance=2.0, n_members=3, epochs=20, random_state=0
    ).fit(x[:400], angle[:400])
    error = model.predict(x[400:]) - angle[400:]
    assert np.sqrt(np.mean(error**2)) < 15  # degrees, of a standard deviation of 35
    low, high = model.predict_interval(x[400:], coverage=0.9).T
    assert 0.75 < np.mean((angle[400:] >= low) & (angle[400:] <= high)) <= 1


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(1, 8, batch_first=True)
        self.head = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.zeros(1, len(x), 8)  # in float32, whatever the input is
        return self.head(self.lstm(x, (hidden, hidden))[0][:, -1])


@pytest.mark.skipif("ACCORD_DATA" not in os.environ, reason="needs the stocks of ACCORD_DATA")
def test_a_recurrent_network_follows_a_stock() -> None:
    """Windows of 60 days of the opening price, and the opening of the next day."""
    path = Path(os.environ["ACCORD_DATA"]) / "stocks" / "Google_Stock_Price_Train.csv"
    with path.open() as file:
        price = np.array([float(row["Open"].replace(",", "")) for row in csv.DictReader(file)])
    scaled = (price - price.mean()) / price.std()
    windows = np.lib.stride_tricks.sliding_window_view(scaled[:-1], 60)[::3, :, None]
    target = price[60:][::3]
    order = np.random.default_rng(0).permutation(len(target))
    train, test = order[:300], order[300:]
    model = ModuleRegressor(
        Recurrent, tolerance="1%", n_members=2, epochs=15, learning_rate=0.01, random_state=0
    ).fit(windows[train], target[train])
    assert model.precision_ == "float32"  # it cannot be called in another
    mean, std = model.predict(windows[test], return_std=True)
    error = mean - target[test]
    assert np.sqrt(np.mean(error**2)) < 0.2 * target.std()
    assert 0.3 < np.sqrt(np.mean((error / std) ** 2)) < 2


class FailsToPredict(nn.Module):
    """Trains, and then has a fault of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x if self.training else x[:, :1])


def test_a_fault_of_the_module_shows_at_fit() -> None:
    x = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        ModuleRegressor(FailsToPredict, epochs=1, n_members=1, random_state=0).fit(x, x[:, 0])


class DropsAxes(nn.Module):
    """Answers a single row with a vector in place of a row."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x).squeeze()


def test_a_module_that_cannot_answer_one_row_is_refused_before_training() -> None:
    x = np.random.default_rng(0).normal(size=(20, 2))
    model = ModuleRegressor(DropsAxes, epochs=1, n_members=1, random_state=0)
    with pytest.raises(ValueError, match=r"shape \(1, 2\) for a batch of 1.*got \(2,\)"):
        model.fit(x, x[:, 0])
    assert not hasattr(model, "history_")


def test_prediction_is_smoothed_by_the_tolerance(model: ModuleRegressor) -> None:
    x, _ = rows()
    bare = clone(model).set_params(predictive="model")
    bare.__dict__.update({k: v for k, v in model.__dict__.items() if k.endswith("_")})
    wide, narrow = model.predict_dist(x), bare.predict_dist(x)
    np.testing.assert_allclose(wide.mean, narrow.mean, rtol=1e-9)
    np.testing.assert_allclose(wide.std**2, narrow.std**2 + 1.5**2 / 3, rtol=1e-6)


def test_a_rule_and_its_tolerance_train_the_same_networks(model: ModuleRegressor) -> None:
    ruled = ModuleRegressor(perceptron, rule="within 1.5", epochs=5, random_state=0).fit(*rows())
    for name, block in model.parameters_.items():
        np.testing.assert_allclose(ruled.parameters_[name], block, rtol=1e-4, atol=1e-6)
    x, _ = rows()
    np.testing.assert_allclose(ruled.predict_interval(x), model.predict_interval(x), rtol=1e-4)


def test_the_same_seed_gives_the_same_model_and_leaves_torch_alone(model: ModuleRegressor) -> None:
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    again = clone(model).fit(*rows())
    assert torch.equal(torch.rand(1), expected)
    x, _ = rows()
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    other = clone(model).set_params(random_state=1).fit(*rows())
    assert not np.allclose(other.predict(x), model.predict(x))


def test_the_units_of_the_target_do_not_matter(model: ModuleRegressor) -> None:
    x, y = rows()
    larger = clone(model).set_params(tolerance=1500.0).fit(x, 1000 * y)
    np.testing.assert_allclose(larger.predict(x), 1000 * model.predict(x), rtol=1e-4)


def test_several_targets() -> None:
    x, y = rows()
    both = np.column_stack([y, -3 * y])
    model = ModuleRegressor(lambda: perceptron(4), tolerance="learn", random_state=0).fit(x, both)
    assert model.predict(x).shape == (60, 2)
    assert model.predict_interval(x).shape == (60, 2, 2)
    assert model.tolerance_.shape == (2,)
    correlation = np.corrcoef(model.predict(x)[:, 1], both[:, 1])[0, 1]
    assert correlation > 0.95


def test_weights_of_rows_count() -> None:
    """Rows of weight 0 are not there, whatever their targets are."""
    x, y = rows()
    weight = np.repeat([1.0, 0.0], [40, 20])
    model = ModuleRegressor(perceptron, n_members=1, target_scaling="none", random_state=0)
    fits = [
        clone(model).fit(x, np.where(weight, (y - 100) / 10, other), sample_weight=weight)
        for other in (-1.0, 1.0)
    ]
    np.testing.assert_allclose(fits[0].predict(x), fits[1].predict(x), rtol=1e-6)


def test_progress_is_shown(capsys: pytest.CaptureFixture[str], at_once: None) -> None:
    ModuleRegressor(perceptron, epochs=2, n_members=2, verbose=1, random_state=0).fit(*rows())
    assert "2 networks" in capsys.readouterr().err


def test_divergence_is_reported() -> None:
    with pytest.warns(RuntimeWarning, match="diverged"), pytest.raises(DivergedError):
        ModuleRegressor(perceptron, epochs=2, learning_rate=1e30, random_state=0).fit(*rows())


# --- files -------------------------------------------------------------------------------------


def test_a_file_holds_the_weights_and_no_code(model: ModuleRegressor, tmp_path: Path) -> None:
    path = tmp_path / "m.accord"
    model.save(path)
    assert b"perceptron" not in path.read_bytes()
    loaded = accord.load(path, make_module=perceptron)
    x, _ = rows()
    np.testing.assert_array_equal(loaded.predict_interval(x), model.predict_interval(x))
    assert loaded.make_module is perceptron
    assert loaded.tolerance == 1.5


def test_a_file_is_refused_without_the_right_module(model: ModuleRegressor, tmp_path: Path) -> None:
    path = tmp_path / "m.accord"
    model.save(path)
    with pytest.raises(ValueError, match="make_module must be given to load this model"):
        accord.load(path)
    with pytest.raises(ModelFileError, match=r"differ in 0\.weight, 0\.bias, 2\.weight"):
        accord.load(path, make_module=wider)


def test_make_module_is_only_for_files_that_need_it(tmp_path: Path) -> None:
    path = tmp_path / "m.accord"
    accord.DeepEnsembleRegressor(epochs=1, n_members=1).fit(*rows()).save(path)
    with pytest.raises(ValueError, match="make_module must only be given"):
        accord.load(path, make_module=perceptron)


def test_batch_normalisation_survives_a_file(tmp_path: Path) -> None:
    def make() -> nn.Module:
        return nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))

    model = ModuleRegressor(make, epochs=3, n_members=2, random_state=0).fit(*rows())
    model.save(tmp_path / "m.accord")
    loaded = accord.load(tmp_path / "m.accord", make_module=make)
    x, _ = rows()
    np.testing.assert_array_equal(loaded.predict(x), model.predict(x))
    # in prediction a row does not depend on its batch
    np.testing.assert_allclose(model.predict(x[:1]), model.predict(x)[:1], rtol=1e-12)


def test_pickles(model: ModuleRegressor) -> None:
    x, _ = rows()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(x), model.predict(x))


# --- what is refused ---------------------------------------------------------------------------

ONE = perceptron()


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: perceptron(1), ValueError, r"shape \(2, 2\).*got \(2, 1\).*2 outputs"),
        (lambda: nn.Linear(2, 2).requires_grad_(False), ValueError, "parameters to train"),
        (lambda: nn.LSTM(2, 2), ValueError, "got tuple"),
        (lambda: 3, TypeError, "must return a torch.nn.Module, got int"),
        (lambda: ONE, ValueError, "a new module on each call"),
        (ONE, TypeError, "makes a new module, got Sequential"),
        (None, TypeError, "makes a new module, got NoneType"),
    ],
)
def test_modules_that_do_not_fit(make, error, words) -> None:
    with pytest.raises(error, match=words):
        ModuleRegressor(make, epochs=1).fit(*rows())


def test_what_a_module_raises_reaches_the_user() -> None:
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        ModuleRegressor(lambda: nn.Linear(5, 2), epochs=1).fit(*rows())


@pytest.mark.parametrize("tolerance", ["local", "robust", "validate"])
def test_tolerances_that_need_distances(tolerance: str) -> None:
    with pytest.raises(ValueError, match="tolerance of a module must be a number"):
        ModuleRegressor(perceptron, tolerance=tolerance).fit(*rows())


def test_a_rule_comes_without_a_tolerance() -> None:
    with pytest.raises(ValueError, match="a rule without tolerance"):
        ModuleRegressor(perceptron, tolerance=1.0, rule="within 1").fit(*rows())


def test_rows_of_another_shape(model: ModuleRegressor) -> None:
    with pytest.raises(ValueError, match=r"rows of shape \(2,\) as in fit, got \(2, 3\)"):
        model.predict(np.zeros((4, 2, 3)))
