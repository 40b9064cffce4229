"""A distribution with a stated epistemic part."""

import numpy as np
import pytest

from accord.distributions import Decomposed, Normal, StudentT


def test_the_rest_is_aleatoric() -> None:
    dist = Decomposed(Normal([0.0, 0.0], [5.0, 13.0]), disagreement=[3.0, 5.0])
    np.testing.assert_allclose(dist.aleatoric, [4.0, 12.0])
    np.testing.assert_allclose(dist.epistemic, [3.0, 5.0])
    np.testing.assert_allclose(dist.std, [5.0, 13.0])


def test_everything_else_is_the_base_s() -> None:
    base = Normal([0.0, 1.0], 2.0)
    dist = Decomposed(base, 1.0)
    for method, arguments in (
        ("log_prob", (0.3,)),
        ("cdf", (0.3,)),
        ("log_interval_prob", (0.0, 1.0)),
        ("log_within_prob", (0.0, 1.0)),
        ("quantile", ([0.1, 0.9],)),
        ("interval", (0.5,)),
    ):
        np.testing.assert_array_equal(
            getattr(dist, method)(*arguments), getattr(base, method)(*arguments)
        )
    np.testing.assert_array_equal(dist.sample(4, random_state=2), base.sample(4, random_state=2))
    assert dist.base is base


def test_rounding_may_exceed_the_whole_but_no_more() -> None:
    dist = Decomposed(Normal(0.0, 1.0), disagreement=1 + 1e-12)
    assert dist.aleatoric == 0
    assert dist.std == 1
    with pytest.raises(
        ValueError, match=r"disagreement and distance must not exceed .* got 1\.1 with 1\.0\."
    ):
        Decomposed(Normal(0.0, 1.0), disagreement=1.1)


def test_an_infinite_variance_leaves_an_infinite_rest() -> None:
    dist = Decomposed(StudentT(2, 0.0, 1.0), disagreement=3.0)
    assert dist.aleatoric == np.inf
    assert dist.epistemic == 3
