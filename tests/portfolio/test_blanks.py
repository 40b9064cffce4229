"""Features that say nothing: rows with a category that no training row had."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

from accord import TableRegressor
from accord.portfolio.blanks import Blanks, blanked
from accord.portfolio.recipes import recipes_for


def test_several_blanks_widen_by_their_squares_and_all_of_them_as_together() -> None:
    blanks = Blanks(
        (np.array([0]), np.array([1, 2]), np.array([3])),
        (np.zeros(1), np.ones(2), np.zeros(1)),
        (0.3, 0.4, 0.0),
        together=0.9,
    )
    x = np.array(
        [[5, 5, 5, 5], [0, 5, 5, 5], [5, 1, 1, 5], [5, 1, 2, 5], [0, 1, 1, 0], [0, 1, 1, 5]]
    )
    expected = [0, 0.3, 0.4, 0, 0.9, 0.9 * np.sqrt(0.5)]
    np.testing.assert_allclose(blanks.added(x), expected)
    put = blanked(x.astype(float), list(zip(blanks.features, blanks.values, strict=True)))
    assert blanks.found(put).all()


def test_blanks_that_are_watched_add_one_spread_in_equal_shares() -> None:
    learnt = Blanks((np.array([0]), np.array([1])), (np.zeros(1), np.zeros(1)), (0.3, 0.4), 0.9)
    watched = (np.array([2]), np.array([3]))
    blanks = Blanks(
        (*learnt.features, *watched),
        (*learnt.values, np.ones(1), np.ones(1)),
        (*learnt.spread, 1.0, 1.0),
        learnt.together,
        watched=2,
    )
    x = np.array([[5, 5, 1, 0], [5, 5, 1, 1], [0, 5, 1, 1], [0, 0, 1, 0], [0, 0, 0, 0]])
    expected = np.hypot(learnt.added(x), [1, 1, 1, 1, 0])
    np.testing.assert_allclose(blanks.added(x), expected)
    np.testing.assert_allclose(blanks.shares(x)[1], [0, 0, 0.5, 0.5])
    np.testing.assert_allclose(blanks.shares(x)[2], np.array([0.09, 0, 0.5, 0.5]) / 1.09)


def levels(n: int, effects: np.ndarray, *, seed: int, prefix: str = "b") -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    level, x = rng.integers(len(effects), size=n), rng.normal(size=n)
    y = effects[level] + 0.5 * x + 0.3 * rng.normal(size=n)
    return pd.DataFrame({"brand": [f"{prefix}{place}" for place in level], "x": x, "y": y})


@pytest.mark.parametrize("n_levels", [12, 40])  # a column for each, and one with their means
def test_rows_of_unknown_categories_are_as_uncertain_as_they_are(n_levels: int) -> None:
    effects = 2 * ndtri((np.arange(n_levels) + 0.5) / n_levels)  # of new levels as of old ones
    model = TableRegressor(effort="quick", time_budget=1e-3, random_state=0)
    model.fit(levels(240, effects, seed=1), "y")
    known, new = (levels(400, effects, seed=2, prefix=prefix) for prefix in ("b", "new"))
    interval = model.predict_interval(new)
    covered = (interval["lower"] <= new["y"]) & (new["y"] <= interval["upper"])
    assert covered.mean() > 0.85
    usual = model.predict_interval(known)
    assert (usual["upper"] - usual["lower"]).median() < 0.4 * (
        interval["upper"] - interval["lower"]
    ).median()


def test_rows_of_rare_categories_are_less_certain_than_those_of_common_ones() -> None:
    """Models are not told a category's number of rows, but how well its mean is known."""
    rng = np.random.default_rng(0)
    effects, chance = rng.normal(size=120), 1 / np.arange(1, 121) ** 1.1

    def rows(n: int, chance: np.ndarray) -> pd.DataFrame:
        level, x = rng.choice(120, n, p=chance / chance.sum()), rng.normal(size=n)
        y = effects[level] + 0.5 * x + 0.3 * rng.normal(size=n)
        return pd.DataFrame({"brand": [f"b{place}" for place in level], "x": x, "y": y})

    train, new = rows(500, chance), rows(4_000, np.ones(120))
    model = TableRegressor(effort="quick", random_state=0).fit(train, "y")
    interval = model.predict_interval(new, coverage=0.9)
    covered = (interval["lower"] <= new["y"]) & (new["y"] <= interval["upper"])
    width = interval["upper"] - interval["lower"]
    known = new["brand"].map(train["brand"].value_counts()).fillna(0)
    rare, common = (known == 1) | (known == 2), known > 20
    assert covered[rare].mean() > 0.8
    assert width[rare].mean() > 1.3 * width[common].mean()


def test_many_categories_that_tell_nothing_widen_nothing() -> None:
    """Every new row seemed to lack two columns: 90 % intervals held 99.5 %, 1.8 wide for 1.0."""
    rng = np.random.default_rng(1)

    def rows(n: int) -> pd.DataFrame:
        frame = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
        frame["one"] = [f"u{place}" for place in rng.integers(100, size=n)]
        frame["two"] = [f"v{place}" for place in rng.zipf(1.5, size=n).clip(max=60)]
        y = np.sin(frame["a"]) + 0.5 * frame["b"] + 0.3 * rng.normal(size=n)
        return frame.assign(y=y)

    train, new = rows(400), rows(2_000)
    model = TableRegressor(effort="quick", random_state=0).fit(train, "y")
    interval = model.predict_interval(new, coverage=0.9)
    covered = (interval["lower"] <= new["y"]) & (new["y"] <= interval["upper"])
    assert 0.85 < covered.mean() < 0.95
    assert (interval["upper"] - interval["lower"]).mean() < 1.2


def test_a_category_that_tells_nothing_widens_nothing() -> None:
    frame = levels(240, np.zeros(6), seed=1)
    model = TableRegressor(effort="quick", time_budget=1e-3, random_state=0).fit(frame, "y")
    widths = [
        model.predict_interval(rows).diff(axis=1)["upper"].mean()
        for rows in (frame, frame.assign(brand="new"))
    ]
    assert widths[1] < 1.5 * widths[0]  # it is as far as any category from all others


def numbers(n: int, *, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rooms, x, idle = rng.integers(1, 8, size=n), rng.normal(size=n), rng.normal(size=n)
    frame = pd.DataFrame({"rooms": rooms, "x": x, "idle": idle})
    return frame.assign(y=2.0 * rooms + x + 0.3 * rng.normal(size=n))


def test_a_number_missing_where_none_was_is_as_uncertain_as_it_is() -> None:
    model = TableRegressor(effort="quick", time_budget=1e-3, random_state=0)
    model.fit(numbers(240, seed=1), "y")
    new = numbers(400, seed=2)
    width = {}
    for gap in ("rooms", "x", "idle"):
        interval = model.predict_interval(new.assign(**{gap: np.nan}))
        inside = (interval["lower"] <= new["y"]) & (new["y"] <= interval["upper"])
        assert inside.mean() > 0.85, gap
        width[gap] = (interval["upper"] - interval["lower"]).median()
    usual = model.predict_interval(new)
    known = (usual["upper"] - usual["lower"]).median()
    assert width["rooms"] > 2 * width["x"] > 2 * known
    assert width["idle"] < 1.1 * known
    # the median itself, which many rows have, is a number like any other
    at_median = (usual["upper"] - usual["lower"])[new["rooms"] == 4]
    assert at_median.median() < 1.2 * known


def factors(n: int, *, seed: int, prefix: str = "b") -> pd.DataFrame:
    """Prices over some decades, to which a number and a category bring factors."""
    rng = np.random.default_rng(seed)
    level, size, x = rng.integers(12, size=n), rng.uniform(-1, 1, n), rng.uniform(-1, 1, n)
    effect = 2 * size + 0.5 * x + np.linspace(-1.5, 1.5, 12)[level]
    brand = [f"{prefix}{place}" for place in level]
    frame = pd.DataFrame({"brand": brand, "size": size, "x": x})
    return frame.assign(y=np.exp(effect + 0.2 * rng.normal(size=n)))


def test_what_says_nothing_of_a_skewed_target_widens_by_a_factor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def of_logarithm(*args: object, **kwargs: object) -> list[object]:
        tried = recipes_for(*args, **kwargs)  # type: ignore[arg-type]
        return [recipe for recipe in tried if recipe.name == "log ridge"]

    monkeypatch.setattr("accord.portfolio.crossfit.recipes_for", of_logarithm)
    model = TableRegressor(effort="quick", random_state=0).fit(factors(400, seed=0), "y")
    known, other = factors(1000, seed=1), factors(1000, seed=2, prefix="new")
    for rows in (known.assign(size=np.nan), known.assign(x=np.nan), other):
        interval = model.predict_interval(rows, coverage=0.9)
        inside = (interval["lower"] <= rows["y"]) & (rows["y"] <= interval["upper"])
        assert inside.mean() > 0.85
        assert 0.6 < model.predict(rows).mean() / rows["y"].mean() < 1.7
        parts = model.predict_uncertainty(rows)
        # a factor of exp(±0.2) is noise, however little else is known
        assert (parts["noise"] / parts["mean"]).between(0.1, 0.4).all()


@pytest.mark.parametrize("telling", [False, True])
def test_a_number_that_few_rows_lack_is_as_uncertain_as_it_is(telling: bool) -> None:
    """From a few gaps no model learns how little it knows; if gaps tell the target, they may."""
    frame, new = numbers(240, seed=1), numbers(400, seed=2)
    lacks = np.arange(240) % 20 == 0
    if telling:
        noise = np.random.default_rng(3).normal(size=400)
        frame.loc[lacks, "y"] = frame["x"] + 0.3 * noise[:240]
        new["y"] = new["x"] + 0.3 * noise
    frame["rooms"] = frame["rooms"].mask(lacks)
    model = TableRegressor(effort="quick", time_budget=1e-3, random_state=0).fit(frame, "y")
    interval = model.predict_interval(new.assign(rooms=np.nan), coverage=0.9)
    inside = (interval["lower"] <= new["y"]) & (new["y"] <= interval["upper"])
    assert inside.mean() > 0.85
    if telling:
        assert (interval["upper"] - interval["lower"]).median() < 3.0
