"""The local tolerance where nothing can be tested."""

import numpy as np

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
