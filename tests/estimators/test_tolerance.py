"""How a tolerance is chosen, on scores made up for the purpose, and how the local one grows."""

import numpy as np
import pytest

from accord import BVMRegressor
from accord.estimators.tolerance import (
    IN_DISTRIBUTION_SLACK,
    Growth,
    choose,
    inner_splits,
    target_knowledge,
)

VALUES = np.array([0.0, 0.1, 0.2])
RELATIVE = np.array([0.0, 1.0])
UNUSUAL = np.array([False, True, False, True])


def make_scores(inside, outside):
    """Mean NLL (S, G, R) that are the same on every split of a kind."""
    return np.array([outside if unusual else inside for unusual in UNUSUAL], dtype=float)


def test_validate_minds_random_rows_only():
    inside = [[1.0, 1.0], [0.5, 0.6], [2.0, 2.0]]
    outside = [[9.0, 9.0], [9.0, 9.0], [1.0, 1.0]]
    curve = choose("validate", VALUES, RELATIVE, make_scores(inside, outside), UNUSUAL)
    assert (curve.chosen, curve.relative) == (0.1, 0.0)
    np.testing.assert_array_equal(curve.in_distribution, [1.0, 0.5, 2.0])


def test_robust_minds_outliers_only():
    inside = [[1.0], [2.0], [3.0]]
    outside = [[5.0], [4.0], [2.0]]
    curve = choose("robust", VALUES, RELATIVE[:1], make_scores(inside, outside), UNUSUAL)
    assert curve.chosen == 0.2


def test_robust_prefers_the_wider_of_two_that_are_as_good():
    scores = make_scores([[1.0], [1.0], [1.0]], [[5.0], [2.0], [2.1]])
    scores[1, 2, 0] += 0.5  # the widest is worse on one outlier split and better on the other
    scores[3, 2, 0] -= 0.5
    curve = choose("robust", VALUES, RELATIVE[:1], scores, UNUSUAL)
    assert curve.chosen == 0.2
    scores[[1, 3], 2, 0] = 3.0  # now it is worse on both
    curve = choose("robust", VALUES, RELATIVE[:1], scores, UNUSUAL)
    assert curve.chosen == 0.1


def test_local_pays_no_more_than_its_slack_on_random_rows():
    inside = [[1.0, 1.0], [1.0 + IN_DISTRIBUTION_SLACK / 2, 5.0], [1.2, 1.2]]
    outside = [[9.0, 9.0], [4.0, 1.0], [1.0, 1.0]]
    curve = choose("local", VALUES, RELATIVE, make_scores(inside, outside), UNUSUAL)
    assert (curve.chosen, curve.relative) == (0.1, 0.0)


@pytest.fixture(scope="module")
def growth():
    return Growth().fit(np.random.default_rng(0).normal(size=(500, 3)))


class TestGrowth:
    def half_width(self, growth, x, unit=0.1):
        target_range = np.array([10.0])
        return growth.half_width(growth(x), unit=np.array([unit]), target_range=target_range)[:, 0]

    def test_half_of_the_rows_like_the_training_rows_have_none(self, growth):
        values = growth(np.random.default_rng(1).normal(size=(2000, 3)))
        assert np.mean(values <= 0) == pytest.approx(0.5, abs=0.06)
        assert np.mean(values <= 1) == pytest.approx(0.95, abs=0.03)

    def test_it_grows_with_distance_and_ends_at_the_range(self, growth):
        far = np.array([[s, s, s] for s in (0.0, 2.0, 3.0, 5.0, 1e6)])
        eps = self.half_width(growth, far)
        assert (np.diff(eps) > 0).all()
        assert eps[0] == pytest.approx(0, abs=0.05)
        assert eps[-1] == 10.0

    def test_beyond_all_data_it_grows_whatever_was_chosen(self, growth):
        inside, beyond = self.half_width(growth, np.array([[0.0] * 3, [50.0] * 3]), unit=0.0)
        assert inside == 0
        assert beyond > 1

    def test_rows_that_are_all_alike(self):
        growth = Growth().fit(np.ones((20, 2)))
        assert np.isfinite(self.half_width(growth, np.array([[1.0, 1.0], [2.0, 2.0]]))).all()


def test_inner_splits_are_of_both_kinds_and_fewer_for_more_rows():
    rng = np.random.default_rng(0)
    few = inner_splits(rng.normal(size=(200, 2)), np.random.RandomState(0))
    many = inner_splits(rng.normal(size=(5000, 2)), np.random.RandomState(0))
    assert len(few) > len(many)
    for split in few:
        assert len(np.intersect1d(split.train, split.test)) == 0
        assert len(split.train) + len(split.test) == 200
    assert {split.unusual for split in few} == {True, False}


def test_a_growth_is_told_with_the_distribution_or_refused():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    local = BVMRegressor(epochs=2, random_state=0).fit(x, x[:, 0])
    dist, growth = local.predict_dist_and_growth(2 * x)
    np.testing.assert_array_equal(growth, local.growth_(2 * x).clip(min=0.0))
    np.testing.assert_array_equal(dist.std, local.predict_dist(2 * x).std)
    constant = BVMRegressor(tolerance=0.1, epochs=2, random_state=0).fit(x, x[:, 0])
    with pytest.raises(ValueError, match=r"needs tolerance='local', got 0.1. Use predict_dist"):
        constant.predict_dist_and_growth(x)


def test_no_bound_leaves_a_side_open_and_none_at_all_is_a_known_target() -> None:
    """As in tables, whose empty cells are no bounds; infinite is no bound, too."""
    nan, inf = np.nan, np.inf
    lower = np.array([nan, 1.0, nan, nan, -inf, 1.0])
    upper = np.array([nan, nan, 5.0, inf, 5.0, 5.0])
    known = target_knowledge(np.full((6, 1), 3.0), lower=lower, upper=upper)
    assert known["lower"][:, 0].tolist() == [3, 1, -inf, 3, -inf, 1]
    assert known["upper"][:, 0].tolist() == [3, inf, 5, 3, 5, 5]
    one_side = target_knowledge(np.full((6, 1), 3.0), lower=lower)
    assert one_side["upper"][:, 0].tolist() == [3, inf, 3, 3, 3, inf]
