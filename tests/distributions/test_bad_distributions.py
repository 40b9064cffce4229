"""Bad input is refused with the rule, what was received and what to do."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from accord.distributions import (
    Decomposed,
    Empirical,
    Laplace,
    Mixture,
    Normal,
    Smoothed,
    StudentT,
    Uniform,
    VaryingStudentT,
)

ROWS = Normal([0.0, 1.0, 2.0], 1.0)
STACK = Normal(np.zeros((2, 3)), 1.0)

CONSTRUCTION: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "zero std": (
        lambda: Normal([0.0, 1.0], [1.0, 0.0]),
        ValueError,
        r"std must be positive, got 0\.0 at index 1\. Use a small positive floor\.",
    ),
    "negative scale": (
        lambda: Laplace(0.0, -1.0),
        ValueError,
        r"scale must be positive, got -1\.0",
    ),
    "nan mean": (
        lambda: Normal([0.0, np.nan], 1.0),
        ValueError,
        "mean must be finite, got nan at index 1",
    ),
    "infinite scale": (
        lambda: StudentT(3, 0.0, np.inf),
        ValueError,
        "scale must be finite, got inf",
    ),
    "column beside row": (
        lambda: Normal(np.zeros(3), np.ones((3, 1))),
        ValueError,
        r"got mean \(3,\) and std \(3, 1\)\. Reshape",
    ),
    "different lengths": (lambda: Normal(np.zeros(3), np.ones(2)), ValueError, "have one shape"),
    "empty": (
        lambda: Normal([], 1.0),
        ValueError,
        r"mean must not be empty, got shape \(0,\)\. Pass at least one row\.",
    ),
    "integer tensor": (
        lambda: Normal(torch.zeros(3, dtype=torch.int64), 1.0),
        TypeError,
        r"mean must be a floating-point tensor, got torch\.int64\. Convert it with \.double\(\)\.",
    ),
    "words": (lambda: Normal(["a"], 1.0), TypeError, "mean must be a number or an array"),
    "ragged": (lambda: Normal([[1.0], [1.0, 2.0]], 1.0), TypeError, "mean must be a number or"),
    "zero df": (lambda: StudentT(0, 0.0, 1.0), ValueError, "df must be positive, got 0"),
    "infinite df": (lambda: StudentT(np.inf, 0.0, 1.0), ValueError, "Use Normal for the limit"),
    "df by row": (
        lambda: StudentT([3.0, 4.0], 0.0, 1.0),
        ValueError,
        r"df must be one number, got shape \(2,\)\. Use VaryingStudentT",
    ),
    "negative df by row": (
        lambda: VaryingStudentT([3.0, -4.0], 0.0, 1.0),
        ValueError,
        "df must be positive",
    ),
    "bounds exchanged": (
        lambda: Uniform([0.0, 3.0], [1.0, 2.0]),
        ValueError,
        r"lower must lie below upper, got 3\.0 and 2\.0 at index 1\. Exchange the two",
    ),
    "an empty box": (lambda: Uniform(1.0, 1.0), ValueError, "lower must lie below upper"),
    "negative tolerance": (
        lambda: Smoothed(ROWS, -0.1),
        ValueError,
        r"tolerance must be non-negative, got -0\.1\. Use 0 for no smoothing\.",
    ),
    "nan tolerance": (
        lambda: Smoothed(ROWS, np.nan),
        ValueError,
        "tolerance must be finite, got nan",
    ),
    "column of tolerances": (
        lambda: Smoothed(ROWS, np.ones((3, 1))),
        ValueError,
        r"tolerance must be a scalar or have the last axes of the base's shape \(3,\)",
    ),
    "too many tolerances": (
        lambda: Smoothed(ROWS, np.ones((2, 3))),
        ValueError,
        r"last axes of the base's shape \(3,\), got shape \(2, 3\)",
    ),
    "a component that is a number": (
        lambda: Mixture([STACK, 3.0]),
        TypeError,
        "components must be distributions with a leading axis of members, got float",
    ),
    "no member axis": (lambda: Mixture(Normal(0.0, 1.0)), ValueError, "leading axis of members"),
    "unsmoothed draws as members": (
        lambda: Mixture(Empirical(np.zeros((4, 2, 3)))),
        TypeError,
        "pool the draws of Empirical members",
    ),
    "weights of another length": (
        lambda: Mixture(STACK, [0.2, 0.3, 0.5]),
        ValueError,
        r"weights must be one number per member, .* got shape \(3,\) for 2 members",
    ),
    "negative weights": (
        lambda: Mixture(STACK, [1.5, -0.5]),
        ValueError,
        r"weights must be non-negative, got -0\.5 at index 1",
    ),
    "no weight at all": (lambda: Mixture(STACK, [0.0, 0.0]), ValueError, "must not all be zero"),
    "negative disagreement": (
        lambda: Decomposed(ROWS, -1.0),
        ValueError,
        r"disagreement must be non-negative, got -1\.0",
    ),
    "no draws": (lambda: Empirical(np.zeros((0, 3))), ValueError, "draws must not be empty"),
    "nan among draws": (lambda: Empirical([1.0, np.nan]), ValueError, "draws must be finite"),
}

QUESTIONS: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "a column of values": (
        lambda: ROWS.log_prob(np.zeros((3, 1))),
        ValueError,
        r"value must be a scalar or end in the shape \(3,\) of the Normal, got shape \(3, 1\)",
    ),
    "one value too few": (lambda: ROWS.cdf([0.0, 1.0]), ValueError, r"got shape \(2,\)"),
    "rows for members": (
        lambda: STACK.cdf(np.zeros(3)),
        ValueError,
        r"end in the shape \(2, 3\) of the Normal, got shape \(3,\)",
    ),
    "nan value": (lambda: ROWS.log_prob([0.0, 1.0, np.nan]), ValueError, "value must not be NaN"),
    "integer tensor": (
        lambda: ROWS.log_prob(torch.tensor([1, 2, 3])),
        TypeError,
        "value must be a floating-point tensor",
    ),
    "level above one": (lambda: ROWS.quantile([0.5, 1.5]), ValueError, "alpha must lie between"),
    "nan level": (lambda: ROWS.quantile(np.nan), ValueError, "alpha must lie between 0 and 1"),
    "a table of levels": (
        lambda: ROWS.quantile(np.full((3, 2), 0.5)),
        ValueError,
        "alpha must be a scalar or one-dimensional",
    ),
    "no levels": (lambda: ROWS.quantile([]), ValueError, "alpha must not be empty"),
    "per cent": (
        lambda: ROWS.interval(95),
        ValueError,
        r"coverage must lie strictly between 0 and 1, got 95\. Write 0\.95 for 95 %\.",
    ),
    "several coverages": (lambda: ROWS.interval([0.5, 0.9]), ValueError, "must be one number"),
    "bounds exchanged": (
        lambda: ROWS.log_interval_prob([0.0, 5.0, 0.0], 1.0),
        ValueError,
        r"lower must not exceed upper, got 5\.0 and 1\.0 at index 1",
    ),
    "negative half-width": (
        lambda: ROWS.log_within_prob(0.0, -1.0),
        ValueError,
        "half_width must be non-negative",
    ),
    "no draws": (lambda: ROWS.sample(0), ValueError, "n must be at least 1, got 0"),
    "half a draw": (lambda: ROWS.sample(0.5), TypeError, r"n must be an integer, got 0\.5"),
    "a word for a seed": (lambda: ROWS.sample(1, random_state="x"), TypeError, "random_state must"),
    "no row left": (
        lambda: ROWS[[False, False, False]],
        ValueError,
        "the selection of rows must not be empty",
    ),
    "one axis too many": (
        lambda: ROWS[0, 1],
        IndexError,
        r"at most 1 indices fit the shape \(3,\)",
    ),
    "an ellipsis": (lambda: ROWS[..., 0], TypeError, "rows must be an index"),
    "the length of nothing": (lambda: len(Normal(0.0, 1.0)), TypeError, r"got shape \(\)"),
}


@pytest.mark.parametrize("case", CONSTRUCTION)
def test_refused_when_built(case: str) -> None:
    build, error, message = CONSTRUCTION[case]
    with pytest.raises(error, match=message):
        build()


@pytest.mark.parametrize("case", QUESTIONS)
def test_refused_when_asked(case: str) -> None:
    ask, error, message = QUESTIONS[case]
    with pytest.raises(error, match=message):
        ask()


def test_what_is_unusual_but_meaningful_is_accepted() -> None:
    assert Normal(0, 1).shape == ()
    assert Normal([0, 1], 1).mean.dtype == np.float64
    assert ROWS.log_prob(np.inf).tolist() == [-np.inf] * 3
    assert ROWS.log_interval_prob(1.0, 1.0).tolist() == [-np.inf] * 3
    assert ROWS.log_within_prob(1.0, 0.0).tolist() == [-np.inf] * 3
    assert [row.mean for row in ROWS] == [0.0, 1.0, 2.0]
    assert ROWS[-1].mean == 2.0
    assert ROWS[np.int64(1)].mean == 1.0
