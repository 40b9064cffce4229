"""The portfolio as a whole: what it promises about its answers."""

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import accord
from accord.portfolio import EncodedTable, MoreRows, PortfolioRegressor, record_type
from accord.portfolio.crossfit import Clock
from accord.portfolio.recipes import (
    CorrectedRecipe,
    GaussianProcessRecipe,
    NetworkRecipe,
    Recipe,
)
from accord.tables import ShuffledRows

Data = tuple[NDArray[np.float64], NDArray[np.float64]]


def quick(**options: object) -> PortfolioRegressor:
    return PortfolioRegressor(effort="quick", random_state=0, **options)  # type: ignore[arg-type]


def hurried() -> PortfolioRegressor:
    """Time for the first recipe only."""
    return quick(time_budget=1e-3)


def bent(n: int, *, seed: int = 0, n_noise: int = 1) -> Data:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n, 1 + n_noise))
    return x, 10 + 3 * np.sin(3 * x[:, 0]) + 0.3 * rng.normal(size=n)


@pytest.fixture(scope="module")
def data() -> Data:
    return bent(80)


@pytest.fixture(scope="module")
def model(data: Data) -> PortfolioRegressor:
    return quick().fit(*data)


@pytest.fixture(scope="module")
def blended(data: Data) -> PortfolioRegressor:
    """Small networks only, one and five components per row."""
    networks = [
        NetworkRecipe("one", "", hidden=(16, 16), steps=300, seeds=2),
        NetworkRecipe("five", "", hidden=(32,), bins=8, components=5, steps=300, seeds=1),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("accord.portfolio.crossfit.recipes_for", lambda *_, **__: networks)
        return quick().fit(*data)


@pytest.fixture(scope="module")
def corrected() -> PortfolioRegressor:
    """Networks that see, in float32, what a process says in float64."""
    errors = NetworkRecipe("errors", "", hidden=(16,), components=2, steps=300, seeds=2, scaled=1)
    recipe = CorrectedRecipe(GaussianProcessRecipe(kernels=1), errors)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("accord.portfolio.crossfit.recipes_for", lambda *_, **__: [recipe])
        return quick().fit(*bent(300))


def answers(model: PortfolioRegressor, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Every figure of a prediction, one line per row."""
    dist = model.predict_dist(x)
    parts = [dist.mean, dist.std, dist.noise, dist.disagreement, dist.distance]
    return np.column_stack([*parts, dist.interval(0.9), dist.quantile([0.01, 0.5, 0.7])])


def test_the_seed_decides_every_bit(model: PortfolioRegressor, data: Data) -> None:
    again = quick().fit(*data)
    np.testing.assert_array_equal(answers(again, data[0]), answers(model, data[0]))


@pytest.mark.parametrize("which", ["model", "blended", "corrected"])
def test_a_row_is_answered_alike_alone_and_among_others(
    which: str, request: pytest.FixtureRequest, data: Data
) -> None:
    """The promise of predict: to 1e-6 of what the row's mean and deviation measure."""
    fitted, x = request.getfixturevalue(which), np.concatenate([50 * data[0][:5], data[0]])
    whole = answers(fitted, x)
    size = 1e-6 * (np.abs(whole[:, :1]) + whole[:, 1:2])
    for batch in (1, 7, 48, 64):
        starts = range(0, min(len(x), 10 * batch), batch)
        pieces = np.concatenate([answers(fitted, x[start : start + batch]) for start in starts])
        assert (np.abs(pieces - whole[: len(pieces)]) <= size[: len(pieces)]).all()
    order = np.random.default_rng(0).permutation(len(x))
    assert (np.abs(answers(fitted, x[order]) - whole[order]) <= size[order]).all()


def test_the_parts_make_up_the_variance(model: PortfolioRegressor, data: Data) -> None:
    dist = model.predict_dist(np.concatenate([data[0], 10 * data[0]]))
    parts = dist.noise**2 + dist.disagreement**2 + dist.distance**2
    np.testing.assert_allclose(parts, dist.variance, rtol=1e-9)


def test_it_finds_the_curve(model: PortfolioRegressor) -> None:
    x, y = bent(1000, seed=9)
    assert np.sqrt(np.mean((model.predict(x) - y) ** 2)) < 0.4
    low, high = model.predict_interval(x, coverage=0.9).T
    assert 0.83 < np.mean((low <= y) & (y <= high)) < 0.97
    assert np.mean(high - low) < 1.6


def test_far_away_it_is_wide_and_sane(model: PortfolioRegressor, data: Data) -> None:
    target_range = np.ptp(data[1])
    far = np.array([[200.0, 0.0], [-200.0, 0.0], [200.0, -200.0]])
    dist = model.predict_dist(far)
    assert (np.abs(dist.mean - data[1].mean()) < 3 * target_range).all()
    assert (dist.distance**2 > 0.5 * dist.variance).all()
    low, high = dist.interval(0.95).T
    assert (high - low > 1.25 * target_range).all()
    assert np.isfinite([low, high]).all()
    assert model.is_unusual(far).all()
    assert model.is_unusual(data[0]).mean() < 0.1


def test_the_largest_floats_are_answered(model: PortfolioRegressor) -> None:
    dist = model.predict_dist(np.array([[1e300, 0.0], [0.0, -1e300]]))
    assert np.isfinite(np.concatenate([dist.mean, dist.std, dist.interval(0.95).ravel()])).all()


def test_bounds_are_kept() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(100, 2))
    y = np.maximum(0.0, 2 * x[:, 0] - 0.5 + 0.5 * rng.normal(size=100))
    far = 20 * rng.normal(size=(50, 2))
    model = quick(bounds=(0.0, None)).fit(x, y)
    for rows in (x, far):
        dist = model.predict_dist(rows)
        assert (dist.interval(0.999) >= 0).all()
        assert (dist.mean >= 0).all()
        assert (dist.cdf(np.full(len(rows), -1e-9)) == 0).all()


def test_one_absurd_target_is_named_and_changes_little() -> None:
    x, y = bent(300, n_noise=2)
    spoilt = y.copy()
    spoilt[17] = 1e9
    plain, other = quick().fit(x, y), quick().fit(x, spoilt)
    assert any("1e+09" in note for note in other.notes_)
    assert not any("far outside" in note for note in plain.notes_)
    change = other.predict(x) - plain.predict(x)  # its neighbours are rows among these
    assert np.sqrt(np.mean(change**2)) < 0.5 * 0.3  # half of the noise
    assert np.abs(change).max() < 1.0
    widths = [np.median(np.ptp(m.predict_interval(x), axis=1)) for m in (plain, other)]
    assert widths[1] < 1.3 * widths[0]


def spoilt(y: NDArray[np.float64], *, seed: int, by: float) -> NDArray[np.float64]:
    """Targets of which one in 25 has nothing to do with the others."""
    rng = np.random.default_rng(seed)
    errors = rng.choice([-by, by], len(y)) * rng.uniform(0.5, 1.5, len(y))
    return np.where(rng.random(len(y)) < 0.04, y + errors, y)


@pytest.mark.parametrize("by", [20.0, 1e3])
def test_gross_errors_cost_the_bulk_next_to_nothing(by: float) -> None:
    """Without trimmed recipes, means were 5 times as wrong and intervals 3 times as wide."""
    (x, y), (new, target) = bent(250), bent(2_000, seed=1)
    plain, other = quick().fit(x, y), quick().fit(x, spoilt(y, seed=2, by=by))
    truth = 10 + 3 * np.sin(3 * new[:, 0])
    errors = [np.sqrt(np.mean((model.predict(new) - truth) ** 2)) for model in (plain, other)]
    assert errors[1] < max(1.5 * errors[0], 0.1)
    intervals = [model.predict_interval(new, coverage=0.9) for model in (plain, other)]
    assert np.ptp(intervals[1], axis=1).mean() < 1.5 * np.ptp(intervals[0], axis=1).mean()
    # what is said of new rows is true of those with such errors too
    target = spoilt(target, seed=3, by=by)
    inside = np.mean((intervals[1][:, 0] <= target) & (target <= intervals[1][:, 1]))
    assert inside == pytest.approx(0.9, abs=0.05)
    mean, std = other.predict(new, return_std=True)
    assert 0.6 < np.sqrt(np.mean(std**2)) / np.sqrt(np.mean((target - mean) ** 2)) < 1.6
    assert any("Check for errors" in note for note in other.notes_)
    assert not any("Check for errors" in note for note in plain.notes_)


def test_a_rare_kind_of_rows_is_no_error() -> None:
    """Rows far from all others whose targets can be predicted are learnt from."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(300, 2))
    rare = x[:, 0] > 0.92
    y = x[:, 1] + 20.0 * rare + 0.1 * rng.normal(size=300)
    model = quick().fit(x, y)
    assert np.abs(model.predict(np.array([[0.97, 0.3], [0.5, 0.3]])) - [20.3, 0.3]).max() < 2


def test_beside_many_equal_targets_others_are_events(data: Data) -> None:
    y = np.where(np.arange(80) % 12 == 0, 30 + data[1], 0.0)
    assert not any("trimmed" in entry.name for entry in quick().fit(data[0], y).leaderboard_)


def test_rounded_targets_are_noted() -> None:
    x, y = bent(120)
    model = quick(time_budget=1e-3).fit(x, np.round(y))
    assert any("steps of 1" in note for note in model.notes_)
    assert model.predict_dist(x).std.min() >= 1 / np.sqrt(12)


def test_recipes_left_out_for_time_are_named() -> None:
    model = hurried().fit(*bent(40))
    assert len(model.leaderboard_) == 1
    (note,) = [note for note in model.notes_ if note.startswith("Not tried, for lack of time:")]
    assert "mixture" in note
    assert model.leaderboard_[0].name not in note


def test_skewed_targets_are_no_wider_than_without_a_model() -> None:
    """Beside the interval of the target's own values, on new rows."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1_300, 3))
    y = np.exp(0.8 * x[:, 0] + 0.5 * rng.normal(size=len(x)))
    model = quick(bounds=(0.0, None)).fit(x[:300], y[:300])
    lower, upper = model.predict_interval(x[300:], coverage=0.95).T
    without = np.diff(np.quantile(y[300:], [0.025, 0.975]))[0]
    assert np.mean((lower <= y[300:]) & (y[300:] <= upper)) > 0.9
    assert np.mean(upper - lower) < 0.8 * without
    assert np.median(upper - lower) < np.mean(upper - lower)
    assert np.median((upper - model.predict(x[300:])) / (model.predict(x[300:]) - lower)) > 1.2


def test_the_budget_is_kept_at_the_speed_that_the_machine_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A recipe is begun only if it will be done in time, beside other work on the machine too."""
    now = 0.0
    monkeypatch.setattr("accord.portfolio.crossfit.time.perf_counter", lambda: now)
    for seconds, tried in ((1.0, 7), (3.0, 2), (60.0, 1)):
        start = now
        clock = Clock(10.0, None)
        clock.plan([8e9] * 12)
        done = 0
        while done < 12 and clock.affords(8e9):
            now += seconds
            clock.end(8e9, seconds)
            done += 1
        assert done == tried  # three tenths of the time are kept
        assert tried == 1 or now - start <= 7.0


def test_what_takes_next_to_nothing_says_nothing_of_the_speed() -> None:
    """Processes that are still starting made the first, tiny recipe seem slow."""
    clock = Clock(10.0, None)
    clock.plan([2e8, 8e9])
    clock.end(2e8, 0.3)
    assert clock.affords(8e9)


def test_of_shifted_parts_as_many_are_looked_at_as_fit_in_what_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr("accord.portfolio.crossfit.time.perf_counter", lambda: now)
    clock = Clock(10.0, None)
    now = 7.0
    assert clock.fitting(1.4, 5) == 2
    assert clock.fitting(0.1, 5) == 5
    assert clock.fitting(0.0, 5) == 5
    now = 60.0
    assert clock.fitting(1.4, 5) == 0
    assert Clock(None, None).fitting(100.0, 5) == 5


def test_the_leaderboard_is_in_order_and_its_weights_are_shares(model: PortfolioRegressor) -> None:
    scores = [entry.nll for entry in model.leaderboard_]
    assert scores == sorted(scores)
    assert sum(entry.weight for entry in model.leaderboard_) == pytest.approx(1.0)
    assert {m.name for m in model.members_} == {e.name for e in model.leaderboard_ if e.weight}


def test_out_of_fold_predictions_are_of_rows_not_seen(
    model: PortfolioRegressor, data: Data
) -> None:
    held = model.held_out_
    np.testing.assert_array_equal(held.rows, np.arange(80))
    honest = np.sqrt(np.mean((held.dist.mean - data[1]) ** 2))
    assert 0.25 < honest < 0.6  # the noise is 0.3
    low, high = held.dist.interval(0.9).T
    assert np.mean((low <= data[1]) & (data[1] <= high)) >= 0.9
    assert len(model.shifted_[0].rows) >= 8


@pytest.mark.parametrize(
    ("recipe", "names"),
    [
        (GaussianProcessRecipe(kernels=1), ("groups", "y_tolerance")),
        (NetworkRecipe("one", "", hidden=(8,), steps=100, seeds=1), ("time", "y_lower", "y_upper")),
    ],
    ids=["process", "network"],
)
def test_rows_of_weight_0_are_as_if_they_were_absent(
    recipe: Recipe, names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So is what holds them together and what is known of them; others keep their numbers."""
    monkeypatch.setattr("accord.portfolio.crossfit.recipes_for", lambda *_, **__: [recipe])
    x, y = bent(90)
    random = np.random.default_rng(0)
    kept = np.sort(random.permutation(90)[:60])
    absent = np.setdiff1d(np.arange(90), kept)
    known = {
        "groups": random.integers(0, 12, 90),
        "time": random.uniform(size=90),
        "y_tolerance": random.uniform(0, 0.2, 90),
        "y_lower": np.where(random.random(90) < 0.1, y - 0.5, np.nan),
        "y_upper": np.full(90, np.nan),
    }
    plain = quick().fit(x[kept], y[kept], **{name: known[name][kept] for name in names})
    x[absent], y[absent] = 7.0, 1e6
    for name, other in zip(known, (99, 5.0, 50.0, -1e6, 1e6), strict=True):
        known[name][absent] = other
    weight = np.isin(np.arange(90), kept).astype(float)
    among = quick().fit(x, y, sample_weight=weight, **{name: known[name] for name in names})
    np.testing.assert_array_equal(answers(among, x), answers(plain, x))
    assert among.rows_seen_ == 60
    assert "30 rows of weight 0 are left out." in among.notes_
    for attribute in ("judged_", "shifted_"):
        for ours, theirs in zip(getattr(among, attribute), getattr(plain, attribute), strict=True):
            np.testing.assert_array_equal(ours.rows, kept[theirs.rows])
    neighbours = [model.explain_uncertainty(x[kept[:2]]).neighbors for model in (among, plain)]
    np.testing.assert_array_equal(neighbours[0], kept[neighbours[1]])


def test_rows_of_weight_0_do_not_count_as_rows() -> None:
    x, y = bent(40)
    few = np.arange(40) < 5
    with pytest.raises(ValueError, match=r"at least 8 rows .* got n_samples = 5 with a positive"):
        quick().fit(x, y, sample_weight=few)
    y[2] = 50.0
    model = quick(time_budget=1e-3, bounds=(None, 20)).fit(x, y, sample_weight=~few)
    assert model.rows_seen_ == 35
    y[30] = 50.0
    with pytest.raises(ValueError, match="1 of 35 lie outside, the first at index 30: 50"):
        model.fit(x, y, sample_weight=~few)


def test_what_is_stated_of_rows_is_stated_of_each() -> None:
    x, y = bent(40)
    for name in ("groups", "time"):
        message = rf"^{name} must have one value per row, \(40,\), got \(30,\)"
        with pytest.raises(ValueError, match=message):
            quick().fit(x, y, **{name: np.arange(30)})


def test_more_rows_than_a_sample_need_a_sample_that_counts(tmp_path: Path) -> None:
    """They name the rows of the sample that they are held out with by their places in it."""
    x, y = bent(40)
    rows = ShuffledRows(tmp_path, record_type(2, ()), 1)
    sample = EncodedTable(x, more=MoreRows(rows, 40))
    with pytest.raises(ValueError, match=r"weights of a sample .* must be positive, got 3 of 0"):
        quick().fit(sample, y, sample_weight=np.arange(40) > 2)


def test_deviations_and_intervals_count_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noisy rows of hardly any weight: the deviation was that of the others, the interval not."""
    rng = np.random.default_rng(0)
    x, noisy = rng.normal(size=(600, 1)), np.arange(600) % 2 == 0
    y = x[:, 0] + np.where(noisy, 3.0, 0.3) * rng.normal(size=600)
    line = NetworkRecipe("line", "", hidden=(), steps=300, learning_rate=1e-2, seeds=1)
    monkeypatch.setattr("accord.portfolio.crossfit.recipes_for", lambda *_, **__: [line])
    model = quick().fit(x, y, sample_weight=np.where(noisy, 1e-3, 1.0))
    width = np.diff(model.predict_interval(x, coverage=0.683)) / 2
    assert 0.3 < np.median(width) / np.median(model.predict_dist(x).std) < 1.2
    assert np.median(np.abs(model.predict(x) - x[:, 0])) < 0.3  # the others alone teach the mean


@pytest.mark.slow
def test_censored_rows_push_predictions_up() -> None:
    """Durations that were cut off at 10: the truth is longer than what was seen."""
    x, y = bent(120)
    cut = y > 10
    seen = np.minimum(y, 10.0)
    lower, upper = np.where(cut, 10.0, np.nan), np.where(cut, np.inf, np.nan)
    naive = quick().fit(x, seen)
    model = quick().fit(x, seen, y_lower=lower, y_upper=upper)
    high = bent(200, seed=4)[0]
    high = high[high[:, 0] > 0.3]
    assert (model.predict(high) > naive.predict(high)).mean() > 0.95
    assert model.predict(high).mean() > 10.3 > naive.predict(high).mean()
    np.testing.assert_array_equal(model.held_out_.rows, np.flatnonzero(~cut))


def test_censored_rows_count_in_the_calibration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise of deviation 1 that is cut off at 0.8: what is left of it has a spread of 0.84."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(1000, 1)), rng.normal(size=1000)
    cut = y > 0.8
    line = NetworkRecipe("line", "", hidden=(), steps=300, learning_rate=1e-2, seeds=1)
    monkeypatch.setattr("accord.portfolio.crossfit.recipes_for", lambda *_, **__: [line])
    bounds = {"y_lower": np.where(cut, 0.8, np.nan), "y_upper": np.where(cut, np.inf, np.nan)}
    model = quick().fit(x, np.minimum(y, 0.8), **bounds)
    assert 0.92 < np.median(model.predict_dist(x).std) < 1.1
    fresh = rng.normal(size=4000)
    lower, upper = model.predict_interval(np.zeros((4000, 1)), coverage=0.9).T
    assert 0.03 < np.mean(fresh > upper) < 0.07
    assert 0.03 < np.mean(fresh < lower) < 0.07
    np.testing.assert_array_equal(model.held_out_.rows, np.flatnonzero(~cut))


def test_levels_of_censored_rows_have_draws_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a table made with the seed 0, below a limit of detection."""
    x, rng = np.random.default_rng(0).uniform(size=(600, 1)), np.random.default_rng(1)
    y = 4 * x[:, 0] + 0.7 * rng.normal(size=600)
    limit = np.quantile(y, 0.3)
    line = NetworkRecipe("line", "", hidden=(), steps=500, learning_rate=1e-2, seeds=1)
    monkeypatch.setattr("accord.portfolio.crossfit.recipes_for", lambda *_, **__: [line])
    below = y < limit
    bounds = {
        "y_lower": np.where(below, -np.inf, np.nan),
        "y_upper": np.where(below, limit, np.nan),
    }
    model = quick().fit(x, np.maximum(y, limit), **bounds)
    np.testing.assert_allclose(
        np.quantile(model.widening_.levels, [0.3, 0.6]), [0.3, 0.6], atol=0.07
    )


def test_a_stated_tolerance_widens() -> None:
    x, y = bent(80)
    plain, told = (hurried().fit(x, y, y_tolerance=eps) for eps in (None, np.full(80, 4.0)))
    assert told.predict_dist(x).std.min() >= 4 / np.sqrt(3)
    assert plain.predict_dist(x).std.mean() < told.predict_dist(x).std.mean()


def test_groups_make_intervals_honest() -> None:
    """Rows of a person share an offset: out-of-fold rows of new persons need wide intervals."""
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(30), 8)
    x = np.column_stack([rng.normal(size=30)[person], rng.normal(size=240)])
    y = 3 * rng.normal(size=30)[person] + x[:, 1] + 0.1 * rng.normal(size=240)
    model = quick().fit(x, y, groups=person)
    low, high = model.predict_interval(rng.normal(size=(300, 2)), coverage=0.9).T
    assert np.median(high - low) > 6


@pytest.mark.parametrize("which", ["model", "blended"])
def test_a_saved_model_answers_the_same_to_the_bit(
    which: str, request: pytest.FixtureRequest, tmp_path: Path, data: Data
) -> None:
    fitted, x = request.getfixturevalue(which), data[0]
    fitted.save(tmp_path / "m.accord")
    loaded = accord.load(tmp_path / "m.accord")
    np.testing.assert_array_equal(answers(loaded, 2 * x), answers(fitted, 2 * x))
    np.testing.assert_array_equal(loaded.is_unusual(2 * x), fitted.is_unusual(2 * x))
    assert loaded.leaderboard_ == fitted.leaderboard_
    assert loaded.notes_ == fitted.notes_
    assert not hasattr(loaded, "held_out_")


@pytest.mark.slow
def test_columns_of_noise_do_not_widen() -> None:
    """Twenty columns more change the mean width on random rows by less than 5 % for each cause."""
    widths = {}
    for n_noise in (2, 22):
        x, y = bent(1000, n_noise=n_noise)
        new, _ = bent(500, seed=3, n_noise=n_noise)
        model = quick().fit(x, y)
        dist = model.predict_dist(new)
        without = np.sqrt(dist.variance - dist.distance**2)
        widths[n_noise] = dist.std.mean(), without.mean()
    assert widths[22][0] / widths[22][1] < 1.05
    assert widths[22][0] < 1.05 * widths[2][0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"effort": "slow"}, "effort must be"),
        ({"time_budget": 0}, "time_budget must be positive"),
    ],
)
def test_bad_options(options: dict[str, object], message: str, data: Data) -> None:
    with pytest.raises(ValueError, match=message):
        PortfolioRegressor(**options).fit(*data)  # type: ignore[arg-type]


def test_tables_that_cannot_be_held_out() -> None:
    x, y = bent(20)
    with pytest.raises(ValueError, match="at least 8 rows are needed"):
        quick().fit(x[:7], y[:7])
    with pytest.raises(ValueError, match="at least 2 groups to hold some out, got 1"):
        quick().fit(x, y, groups=np.zeros(20))
    message = "at least 8 rows with a measured target, got 7 beside 13 censored ones. Add"
    lower = np.where(np.arange(20) < 7, np.nan, y - 0.1)
    with pytest.raises(ValueError, match=message):
        quick().fit(x, y, y_lower=lower, y_upper=lower + 0.2)
    with pytest.raises(ValueError, match="got 0 beside 20 censored ones"):
        quick().fit(x, y, y_lower=y - 0.1, y_upper=y + 0.1)
    with pytest.raises(ValueError, match="one target per row, got 2"):
        quick().fit(x, np.column_stack([y, y]))


def test_targets_whose_squares_are_no_floats_are_refused_with_their_row() -> None:
    x, y = bent(20)
    y[3] = -1e300
    message = "y must lie within ±1e+150, got -1e+300 at index 3. Correct it, or change the unit."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        quick().fit(x, y)


def test_far_away_widths_do_not_grow_beyond_reason() -> None:
    """A process whose deviation grows with the distance is not widened by many of these again."""
    rng = np.random.default_rng(7)
    x = rng.uniform(-1, 1, size=(300, 2))
    y = np.sin(2 * x[:, 0]) * np.exp(x[:, 1]) + 1e-3 * rng.normal(size=300)
    lower, upper = quick().fit(x, y).predict_interval([[3.0, 3.0], [3.0, -3.0], [1e3, 1e3]]).T
    assert np.all(upper - lower > y.std())
    assert np.all(upper - lower < 50 * y.std())


def test_logarithms_of_targets_over_many_magnitudes() -> None:
    """exp of what a curve of such a logarithm's variance is would be no float."""
    rng = np.random.default_rng(1)
    x = rng.standard_t(2, size=(200, 3))
    z = np.clip(x, -20, 20)
    logarithm = np.sin(2 * z[:, 0]) + z[:, 1] * np.tanh(z[:, 2]) + 0.2 * rng.normal(size=200)
    model = quick().fit(x, np.exp(1.5 * logarithm))
    assert any(entry.name.startswith("log") and entry.weight for entry in model.leaderboard_)
    dist = model.predict_dist(np.array([[100.0, 100, 100], [-100, 100, -100], [0, 0, 0]]))
    for figure in (dist.mean, dist.std, dist.distance, dist.quantile(0.95)):
        assert np.isfinite(np.asarray(figure)).all()


@pytest.mark.parametrize("target", [np.zeros(30), np.repeat([0.0, 1.0], 15)])
def test_targets_of_one_or_two_values(target: NDArray[np.float64]) -> None:
    x = np.random.default_rng(0).normal(size=(30, 2))
    interval = hurried().fit(x, target).predict_interval(x)
    assert np.isfinite(interval).all()


def test_features_that_say_nothing() -> None:
    y = np.random.default_rng(0).normal(size=40)
    model = quick().fit(np.ones((40, 2)), y)
    assert np.abs(model.predict(np.ones((1, 2))) - y.mean())[0] < 0.5


def test_rows_are_usual_beside_a_table_of_copies() -> None:
    """Copies are no neighbours of each other: beside them, every new row would seem far."""
    x, y = bent(60, n_noise=2)
    copied = hurried().fit(np.repeat(x, 5, axis=0), np.repeat(y, 5))
    assert copied.is_unusual(bent(200, seed=1, n_noise=2)[0]).mean() < 0.2


def test_of_hardly_any_rows_none_are_called_the_most_unusual() -> None:
    """No models are trained without them, so that ordinary held-out rows must not stand in."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 2))
    model = PortfolioRegressor(effort="quick", random_state=0).fit(x, x[:, 0] + rng.normal(size=30))
    assert model.shifted_ == ()
    assert sum(len(part.rows) for part in model.judged_) == 30


def test_a_generator_is_a_seed() -> None:
    x, y = bent(30)
    model = PortfolioRegressor(effort="quick", time_budget=1e-3)
    means = [
        model.set_params(random_state=np.random.default_rng(seed)).fit(x, y).predict(x)
        for seed in (3, 3, 4)
    ]
    np.testing.assert_array_equal(means[0], means[1])
    assert (means[0] != means[2]).any()


@pytest.mark.parametrize("bounds", [(3, 1), (0,), "positive"])
def test_bounds_that_are_none(bounds: object) -> None:
    with pytest.raises(ValueError, match="bound"):
        PortfolioRegressor(bounds=bounds).fit(np.zeros((20, 1)), np.arange(20.0))


@pytest.mark.parametrize("unit", [2.0**-40, 2.0**40])
def test_the_unit_of_the_target_changes_nothing_else(unit: float) -> None:
    """Also where one target lies so far out that densities are bounded from below."""
    x, y = bent(80)
    y[3] += 30.0
    plain, other = quick().fit(x, y), quick().fit(x, unit * y)
    assert [(e.name, e.weight) for e in plain.leaderboard_] == [
        (e.name, e.weight) for e in other.leaderboard_
    ]
    np.testing.assert_allclose(other.predict_dist(x).std, unit * plain.predict_dist(x).std)
    gained = [e.nll - f.nll for e, f in zip(other.leaderboard_, plain.leaderboard_, strict=True)]
    np.testing.assert_allclose(gained, np.log(unit), atol=1e-9)


def test_means_of_bounded_targets_are_not_raised() -> None:
    """Most of them lie on the bound: what is cut off below it must not push them up."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (1_200, 2))
    y = (rng.uniform(size=len(x)) < 1 / (1 + np.exp(1 - 2 * x[:, 0]))).astype(float)
    model = quick(bounds=(0.0, None)).fit(x[:200], y[:200])
    mean = model.predict(x[200:])
    assert mean.mean() == pytest.approx(y[200:].mean(), abs=0.05)
    assert np.sqrt(np.mean((mean - y[200:]) ** 2)) < 0.9 * y.std()


def test_curves_that_hardly_count_do_not_make_up_the_deviation() -> None:
    """One kind of rows is quiet and one is loud, and a mixture has a curve for each."""

    def two_kinds(n: int, seed: int) -> tuple[NDArray[np.float64], ...]:
        rng = np.random.default_rng(seed)
        loud = rng.random(n) < 0.3
        x = rng.normal(size=(n, 3))
        x[:, 0] += 6.0 * loud
        noise = np.where(loud, 2.0, 0.3) * rng.normal(size=n)
        return x, 10.0 * loud + np.sin(2 * x[:, 1]) + noise, loud

    x, y, _ = two_kinds(400, 0)
    new, truth, loud = two_kinds(2_000, 1)
    quiet = ~loud.astype(bool)
    dist = quick().fit(x, y).predict_dist(new[quiet])
    error = np.sqrt(np.mean(np.square(dist.mean - truth[quiet])))
    # a weight of a thousandth, ten away, is as large a deviation as the noise
    assert np.median(np.asarray(dist.std)) < 1.2 * error
