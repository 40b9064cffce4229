"""Toys: the targets follow the law that the toy states."""

from collections.abc import Callable

import numpy as np
import pytest

from accord.datasets import Dataset, make_cubic, make_heteroscedastic, make_homoscedastic

MAKERS = [make_cubic, make_heteroscedastic, make_homoscedastic]


@pytest.mark.parametrize("make", MAKERS)
def test_targets_follow_the_truth(make: Callable[..., Dataset]) -> None:
    toy = make(20_000, random_state=0)
    assert toy.truth is not None
    z = (toy.y - toy.truth.mean(toy.X)) / toy.truth.std(toy.X)
    assert abs(z.mean()) < 4 / np.sqrt(len(z))
    assert abs(z.var() - 1) < 4 * np.sqrt(2 / len(z))
    # also where x is small and where it is large: the noise has the stated size everywhere
    for part in np.array_split(np.argsort(toy.X[:, 0]), 10):
        assert abs(z[part].var() - 1) < 5 * np.sqrt(2 / len(part))


@pytest.mark.parametrize("make", MAKERS)
def test_the_seed_decides(make: Callable[..., Dataset]) -> None:
    np.testing.assert_array_equal(make(30, random_state=5).y, make(30, random_state=5).y)
    assert not np.array_equal(make(30, random_state=5).y, make(30, random_state=6).y)


def test_cubic_is_figure_one() -> None:
    toy = make_cubic(random_state=0)
    assert toy.truth is not None
    assert toy.X.shape == (20, 1)
    assert np.abs(toy.X).max() <= 4
    np.testing.assert_allclose(toy.truth.mean(toy.X), toy.X[:, 0] ** 3)
    np.testing.assert_allclose(toy.truth.std(toy.X), 3.0)


def test_true_distribution_scores_best() -> None:
    toy = make_heteroscedastic(4000, random_state=0)
    assert toy.truth is not None
    own = toy.truth.dist(toy.X).log_prob(toy.y).mean()
    flat = make_homoscedastic(1, noise=float(toy.truth.std(toy.X).mean()), random_state=0)
    assert flat.truth is not None
    assert own > flat.truth.dist(toy.X).log_prob(toy.y).mean()


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        make_cubic(0)
    with pytest.raises(ValueError, match=r"noise must be non-negative, got -1\. Use 0"):
        make_cubic(noise=-1)
