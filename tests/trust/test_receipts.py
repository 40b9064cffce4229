"""Receipts: parts that add up, Shapley values with known answers, and words that are true."""

from dataclasses import replace
from itertools import permutations
from math import factorial

import numpy as np
import pandas as pd
import pytest

import accord
from accord import PortfolioRegressor, TableRegressor
from accord.distributions import Decomposed, Distribution, Normal
from accord.trust import Attribution, Columns, Proximity, Receipts, explain, unlike_number
from accord.workflows import FitResult

RNG = np.random.default_rng(0)
TRAINING = RNG.normal(size=(300, 3)) * [1.0, 5.0, 0.1]
FAR = np.array([[0.0, 0.0, 0.0], [9.0, 0.0, 0.0], [1.0, -40.0, 3.0]])


class Numbers:
    """Cells of a table of numbers in which nothing is missing."""

    def __init__(self, shape: tuple[int, int], n_references: int) -> None:
        self.missing, self.new = np.zeros(shape, bool), np.zeros(shape, bool)
        self.n_references = n_references

    def known(self, column: int) -> np.ndarray:
        return np.ones(self.n_references, bool)

    def unlike(self, row: int, column: int, near: np.ndarray) -> str:
        return "far"


def variance(x: np.ndarray) -> np.ndarray:
    """A noise with an interaction, so that Shapley values are not mere differences."""
    return np.exp(0.3 * x[:, 0]) * (1 + 0.1 * x[:, 1] ** 2) + 0 * x[:, 2]


def answer(x: np.ndarray) -> Distribution:
    """Noise as above, disagreement 2, and no distance."""
    total = np.sqrt(variance(x) + 4.0)
    return Decomposed(Normal(x.sum(axis=1), total), disagreement=np.full(len(x), 2.0))


def receipts(x: np.ndarray, *, permutations: int = 0, columns: Columns | None = None) -> Receipts:
    near = Proximity().fit(TRAINING)
    columns = columns or Columns.of(["a", "b", "c"])
    return explain(
        answer,
        near,
        x,
        columns=columns,
        cells=Numbers((len(x), len(columns)), len(near.references_)),
        reference_numbers=near.reference_rows_,
        coverage=0.9,
        permutations=permutations,
        seed=0,
    )


def exact_shapley(x: np.ndarray, background: np.ndarray) -> np.ndarray:
    """The definition: every order of the columns, every background row."""
    values = np.zeros(len(x))
    for order in permutations(range(len(x))):
        mixed = background.copy()
        for column in order:
            before = variance(mixed).mean()
            mixed[:, column] = x[column]
            values[column] += variance(mixed).mean() - before
    return values / factorial(len(x))


def test_distance_splits_by_feature_as_defined() -> None:
    near = Proximity(n_neighbors=4).fit(TRAINING, feature_weight=[1.0, 0.5, 0.2])
    found = near.neighbors(FAR)
    weight = np.array([1.0, 0.5, 0.2]) / TRAINING.std(axis=0)
    for row, x in enumerate(FAR):
        apart = (TRAINING - x) * weight
        length = np.linalg.norm(apart, axis=1)
        nearest = np.argsort(length)[:4]
        assert near.reference_rows_[found.rows[row]].tolist() == nearest.tolist()
        expected = (apart[nearest] ** 2 / length[nearest, None]).mean(axis=0)
        np.testing.assert_allclose(found.by_feature[row], expected, rtol=1e-9)
    np.testing.assert_allclose(found.by_feature.sum(axis=1), near.distance(FAR), rtol=1e-12)
    np.testing.assert_allclose(near.references(), TRAINING, rtol=1e-12)


@pytest.mark.parametrize("d", [3, 12])
def test_neighbours_of_rows_whose_distance_overflows(d: int) -> None:
    near = Proximity().fit(RNG.normal(size=(40, d)))
    found = near.neighbors(np.full((1, d), 1e300))
    assert found.rows.max() < 40
    assert np.isfinite(found.by_feature).all()
    assert (found.by_feature > 0).all()


def test_a_training_row_is_at_distance_zero_in_every_feature() -> None:
    found = Proximity(n_neighbors=1).fit(TRAINING).neighbors(TRAINING[:5])
    assert found.rows[:, 0].tolist() == [0, 1, 2, 3, 4]
    assert not found.by_feature.any()


def test_shapley_values_agree_with_the_definition() -> None:
    found = receipts(FAR, permutations=2_000).by_noise
    assert found is not None
    for row, x in enumerate(FAR):
        expected = exact_shapley(x, TRAINING)
        assert np.all(np.abs(found.values[row] - expected) <= 4 * found.error[row] + 1e-9)
        assert abs(found.baseline[row] - variance(TRAINING).mean()) < 0.3
    assert not found.values[:, 2].any()
    assert found.error[:, 0].max() < 0.1 * variance(FAR).max()


def test_shapley_values_add_up_to_the_part() -> None:
    found = receipts(FAR, permutations=7)
    assert found.by_noise is not None
    assert found.by_disagreement is not None
    whole = found.by_noise.baseline + found.by_noise.values.sum(axis=1)
    np.testing.assert_allclose(whole, variance(FAR), rtol=1e-6)
    np.testing.assert_allclose(found.by_disagreement.baseline, 4.0)
    np.testing.assert_allclose(found.by_disagreement.values, 0.0, atol=1e-9)


def test_errors_shrink_with_the_root_of_the_permutations() -> None:
    few, many = (receipts(FAR, permutations=n).by_noise for n in (200, 3_200))
    assert few is not None
    assert many is not None
    ratio = few.error[1, 0] / many.error[1, 0]
    assert 2.5 < ratio < 6


def test_features_of_one_column_are_taken_over_together() -> None:
    joined = receipts(FAR, permutations=800, columns=Columns.of(["ab", "ab", "c"])).by_noise
    assert joined is not None
    expected = variance(FAR) - joined.baseline
    np.testing.assert_allclose(joined.values[:, 0], expected, rtol=1e-9)


def test_noise_cannot_be_narrowed_and_ignorance_can() -> None:
    wide, narrow = receipts(np.array([[9.0, 30.0, 0.0], [-9.0, 0.0, 0.0]])).narrow
    assert wide == "nothing, it is noise in the data"
    assert narrow.startswith("more training rows like this one: up to 8")


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (93.0, "93: no training row is above 90"),
        (-2.0, "-2: no training row is below 0"),
        (89.5, "89.5: only 1 of 101 training rows is as high"),
        (1.0, "1: only 2 of 101 training rows are as low"),
        (60.0, "60: no training row lies between 49 and 71"),
        (22.5, "22.5: the nearest training rows have 19 to 21"),
        (20.2, ""),
    ],
)
def test_words_about_a_number(value: float, sentence: str) -> None:
    training = np.sort(np.r_[np.arange(50.0), np.linspace(71, 88, 50), 90.0])
    near = np.array([19.0, 20.0, 21.0])
    assert unlike_number(value, training, near) == sentence


@pytest.fixture(scope="module")
def model(fitted: FitResult) -> TableRegressor:
    return fitted.model


def odd_rows(houses: pd.DataFrame) -> pd.DataFrame:
    odd = houses.head(5).copy()
    odd.loc[0, "age"] = 300.0
    odd.loc[1, "town"] = "Rome"
    odd.loc[2, "area"] = 1e9
    odd.loc[3, "age"] = np.nan
    odd.loc[4, "sold"] = "2031-05-01"
    return odd


def test_the_parts_of_a_table_row_add_up(model: TableRegressor, houses: pd.DataFrame) -> None:
    rows = pd.concat([houses, odd_rows(houses)], ignore_index=True)
    found = model.explain_uncertainty(rows)
    dist = model.predict_dist(rows)
    np.testing.assert_allclose(found.parts.std, dist.std, rtol=1e-6)
    np.testing.assert_allclose(
        found.distance_by_column.sum(axis=1), np.square(dist.distance), rtol=1e-6, atol=1e-12
    )
    np.testing.assert_allclose(sum(found.shares.values()), 1.0, rtol=1e-6)
    frame = found.to_frame()
    by_column = [name for name in frame if name.startswith("distance_from_")]
    np.testing.assert_allclose(
        frame[by_column].sum(axis=1), frame["distance_share"], rtol=1e-6, atol=1e-12
    )
    np.testing.assert_allclose(frame[["lower", "upper"]], dist.interval(0.95))
    # those of a training row that is asked about again: the row itself, by its number in the file
    assert found.neighbors[:150, 0].tolist() == list(range(1, 151))


def test_a_document_of_a_row_says_what_its_row_of_the_frame_says() -> None:
    found = receipts(FAR, permutations=4)
    document, row = found.to_json(1), found.to_frame().loc[1]
    for name in ("mean", "std", "lower", "upper", "unlike", "narrow"):
        assert document[name] == row[name]
    for part in ("noise", "disagreement"):
        assert document["shares"][part] == row[f"{part}_share"]
        for column in found.names:
            assert document[f"{part}_by_column"][column] == row[f"{part}_from_{column}"]
            assert document[f"{part}_error"][column] == row[f"{part}_from_{column}_error"]
    assert document["distance_by_column"] == {c: row[f"distance_from_{c}"] for c in found.names}
    assert document["text"] == found.text(1)


def test_words_say_what_is_unlike_the_training_rows(
    model: TableRegressor, houses: pd.DataFrame
) -> None:
    found = model.explain_uncertainty(odd_rows(houses))
    oldest = houses["age"].max()
    assert found.unlike[0] == f"age 300: no training row is above {oldest:g}"
    assert found.unlike[1] == "town Rome: no training row has it"
    assert "or more: no training row is above" in found.unlike[2]
    assert found.unlike[4].startswith("sold 2031-05-01: no training row is above 2022-")
    assert np.argmax(found.distance_by_column[0]) == found.names.index("age")
    assert found.narrow[0].startswith("more training rows like this one")
    text = found.text(0)
    assert "distance from the training rows" in text
    assert found.unlike[0] in text


def test_a_part_stands_beside_that_of_a_usual_row() -> None:
    """A row of a quarter of the usual deviation: shares of its own variance were above 100 %."""
    quiet = Attribution(np.array([16.0]), np.array([[-12.0, -3.0, 0.0]]), np.full((1, 3), 0.2))
    text = replace(receipts(FAR[:1]), by_noise=quiet).text(0)
    assert (
        "Noise: a deviation of 1, of a usual row 4. By column, in shares of the larger one's "
        "variance: a −75 % ± 1 %, b −19 % ± 1 %."
    ) in text


def test_filling_in_a_value_that_matters_narrows_most() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.uniform(-3, 3, 400), "b": rng.normal(size=400)})
    y = 10 * frame["a"] + rng.normal(0, 0.3, 400)
    frame.loc[rng.random(400) < 0.2, "a"] = np.nan
    model = TableRegressor(effort="quick", random_state=0).fit(frame, y)
    rows = pd.DataFrame({"a": [np.nan, 0.5], "b": [0.0, 0.0]}, index=["gap", "whole"])
    found = model.explain_uncertainty(rows, permutations=4)
    assert found.narrow[0].startswith("the missing value of a: about ")
    assert "missing value" not in found.narrow[1]
    assert found.to_frame().index.tolist() == ["gap", "whole"]


def test_what_is_unknown_counts_as_distance_in_its_own_column() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "a": rng.uniform(-3, 3, 300),
            "b": rng.normal(size=300),
            "k": rng.choice(list("pqrs"), 300),
        }
    )
    y = 3 * frame["a"] + frame["b"] + 4 * (frame["k"] == "p") + rng.normal(0, 0.3, 300)
    model = TableRegressor(effort="quick", time_budget=1e-3, random_state=0).fit(frame, y)
    rows = pd.DataFrame({"a": [np.nan, 0.5], "b": [2.0, 2.0], "k": ["q", "new"]})
    found = model.explain_uncertainty(rows)
    largest = [found.names[place] for place in found.distance_by_column.argmax(axis=1)]
    assert largest == ["a", "k"]
    total = np.square(model.predict_dist(rows).distance)
    np.testing.assert_allclose(found.distance_by_column.sum(axis=1), total, rtol=1e-6)
    assert found.unlike[0].startswith("a missing: no training row lacks it")
    assert found.unlike[1].startswith("k new: no training row has it")
    assert found.narrow[0].startswith("the missing value of a: about ")  # no further row helps
    assert found.narrow[1].startswith("more training rows like this one: up to ")


def test_of_many_categories_a_new_one_is_told_from_a_rare_one() -> None:
    rng = np.random.default_rng(0)
    level = np.r_[np.arange(80), rng.integers(40, size=220)]
    frame = pd.DataFrame({"k": [f"k{place}" for place in level], "a": rng.normal(size=300)})
    y = rng.normal(size=80)[level] + frame["a"] + rng.normal(0, 0.3, 300)
    model = TableRegressor(effort="quick", time_budget=1e-3, random_state=0).fit(frame, y)
    found = model.explain_uncertainty(pd.DataFrame({"k": ["new", "k79"], "a": [9.0, 9.0]}))
    assert "k new: no training row has it" in found.unlike[0]
    assert "k k79: no training row has it" not in found.unlike[1]


def test_a_saved_model_gives_the_same_receipts(
    model: TableRegressor, houses: pd.DataFrame, model_file
) -> None:
    odd = odd_rows(houses)
    before = model.explain_uncertainty(odd, permutations=4)
    after = accord.load(model_file).explain_uncertainty(odd, permutations=4)
    pd.testing.assert_frame_equal(before.to_frame(), after.to_frame())


def test_receipts_of_arrays_and_frames_of_numbers() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(150, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=150)
    model = PortfolioRegressor(effort="quick", random_state=0).fit(X, y)
    found = model.explain_uncertainty([[9.0, 0.0], [0.0, 0.0]], coverage=0.8, permutations=4)
    assert found.names == ("x0", "x1")
    assert found.unlike[0].startswith("x0 9: no training row is above 2.")
    np.testing.assert_allclose(
        found.interval, model.predict_interval([[9.0, 0.0], [0.0, 0.0]], 0.8)
    )
    named = PortfolioRegressor(effort="quick", random_state=0).fit(
        pd.DataFrame(X, columns=["u", "v"]), y
    )
    assert named.explain_uncertainty(pd.DataFrame({"u": [9.0], "v": [0.0]})).names == ("u", "v")


def test_bad_requests_are_refused(model: TableRegressor, houses: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match="permutations must be at least 0, got -1"):
        model.explain_uncertainty(houses, permutations=-1)
    with pytest.raises(ValueError, match="coverage must lie strictly between 0 and 1"):
        model.explain_uncertainty(houses, coverage=95)
