"""The local tolerance where nothing can be tested."""

import numpy as np

from accord.portfolio.blend import LocalTolerance
from accord.portfolio.local import growth_at
from accord.trust import Growth


def beyond(growth: Growth, x: float) -> float:
    return float(growth_at(growth, growth(np.array([[x]])))[1][0])


def test_a_gap_in_a_dense_cloud_is_not_as_far_as_the_outside() -> None:
    """A step of many neighbours' distances is small beside the extent of the cloud."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-4, -1, 500), rng.uniform(1, 4, 500)])
    growth = Growth().fit(x[:, None])
    inside, beside, outside = (beyond(growth, place) for place in (0.0, 6.0, 80.0))
    assert 0.1 < inside < 0.35
    assert inside < beside < 0.75
    assert outside > 0.99


def test_no_tolerance_beyond_evidence_among_the_training_rows() -> None:
    x = np.random.default_rng(1).normal(size=(300, 3))
    growth = Growth().fit(x)
    assert np.all(growth_at(growth, growth.leave_one_out())[1] == 0)


def test_the_tolerance_is_the_larger_of_what_was_chosen_and_what_is_beyond_evidence() -> None:
    one = np.ones(3)
    tau = LocalTolerance(base=0.1, relative=0.5, start=1.0).at(
        np.array([0.5, 3.0, 3.0]), np.array([0.0, 0.2, 0.9]), std=one, unit=one
    )
    np.testing.assert_allclose(tau, [0.0, 1.2, 1.2])
    nothing_chosen = LocalTolerance().at(3 * one, 0.7 * one, std=one, unit=2 * one)
    np.testing.assert_allclose(nothing_chosen, 1.4)
