"""Verdicts are tests: three answers, a stated level, and use of equal rank with reliability."""

from dataclasses import replace

import numpy as np
import pytest

from accord.tabular import Assessment
from accord.workflows import Use, reliability
from accord.workflows.verdict import evaluation_verdict, fit_verdict


def judged(inside: int, rows: int, *, coverage: float = 0.95, width: float = 2.0) -> Assessment:
    """Intervals around 0, with so many of the observed values inside."""
    y = np.where(np.arange(rows) < inside, 0.0, width)
    y[:inside] = np.linspace(-0.4, 0.4, inside) * width
    ends = np.tile([-width / 2, width / 2], (rows, 1))
    return Assessment.of_intervals(
        np.zeros(rows), ends, y, rows=np.arange(1, rows + 1), coverage=coverage
    )


@pytest.mark.parametrize(
    ("inside", "rows", "belief"),
    [
        (20, 20, "too few rows"),  # all inside, and yet 83 % coverage would do that too
        (33, 38, "too few rows"),  # 86.8 % of 38 rows is within sampling error of 95 %
        (11, 20, "does not hold"),
        (420, 442, "holds"),
        (390, 442, "does not hold"),
        (94_800, 100_000, "holds"),  # certainly below 95 %, by too little to matter
        (1_870, 2_000, "holds"),  # 93.5 %, and 94.1 % or more cannot be excluded
        (93_000, 100_000, "does not hold"),
        (100, 100, "holds"),
        (0, 0, "too few rows"),
    ],
)
def test_three_answers(inside: int, rows: int, belief: str) -> None:
    assert reliability(judged(inside, rows)).belief == belief


def test_false_alarms_are_as_rare_as_stated() -> None:
    rng = np.random.default_rng(0)
    calls = [
        reliability(judged(int(rng.binomial(n, 0.95)), n)).belief == "does not hold"
        for n in (30, 100, 400)
        for _ in range(400)
    ]
    assert np.mean(calls) <= 0.025 + 0.01


def test_models_at_eighty_per_cent_are_never_said_to_hold() -> None:
    rng = np.random.default_rng(0)
    calls = [
        reliability(judged(int(rng.binomial(n, 0.8)), n)).belief == "holds"
        for n in (20, 50, 200)
        for _ in range(400)
    ]
    assert np.mean(calls) <= 0.025


def verdict(found: Assessment, *, width: float, without: float, linear: float | None = None) -> str:
    none = judged(0, 0)
    made = fit_verdict(found, none, Use(width, width, without, linear), target="price")
    return f"{made.level}: {made.headline}"


def test_use_has_the_same_rank_as_reliability() -> None:
    holds, fails, unknown = judged(420, 442), judged(390, 442), judged(20, 20)
    assert verdict(holds, width=6, without=10) == (
        "good: The 95 % intervals hold and are 40 % narrower than without a model."
    )
    assert verdict(holds, width=11, without=10) == (
        "poor: The 95 % intervals hold, but are no narrower than without a model."
    )
    assert verdict(holds, width=9.8, without=10) == (
        "caution: The 95 % intervals hold, but are hardly narrower than without a model."
    )
    assert verdict(fails, width=6, without=10) == (
        "poor: The 95 % intervals do not hold: 88.2 % of the rows lie inside. They are 40 % "
        "narrower than without a model."
    )
    assert verdict(unknown, width=6, without=10) == (
        "caution: Too few rows to tell whether the 95 % intervals hold (confidence range 83 % to "
        "100 %); they are 40 % narrower than without a model."
    )


def test_a_linear_model_that_is_sharper_is_said() -> None:
    holds = judged(420, 442)
    assert verdict(holds, width=6, without=10, linear=5) == (
        "caution: The 95 % intervals hold and are 40 % narrower than without a model, but 20 % "
        "wider than those of a linear model."
    )
    assert verdict(holds, width=6, without=10, linear=5.9).startswith("good: ")


def test_a_linear_model_that_is_less_sharp_is_said() -> None:
    assert verdict(judged(420, 442), width=6, without=10, linear=8) == (
        "good: The 95 % intervals hold and are 40 % narrower than without a model, 25 % narrower "
        "than with a linear one."
    )
    assert "over 99 % narrower than with a linear" in verdict(
        judged(420, 442), width=0.001, without=10, linear=8
    )


def test_what_does_not_hold_for_unusual_rows_is_a_sentence() -> None:
    made = fit_verdict(judged(420, 442), judged(20, 40), Use(6, 6, 10, 8), target="price")
    assert made.headline == (
        "The 95 % intervals hold for rows like these, but not for the most unusual ones. They are "
        "40 % narrower than without a model, 25 % narrower than with a linear one."
    )


@pytest.mark.parametrize("linear", [None, 3.0, 9.0, 30.0])
@pytest.mark.parametrize("unusual", [(0, 0), (20, 40), (100, 100)])
@pytest.mark.parametrize("found", [(420, 442), (390, 442), (20, 20), (100, 100)])
def test_nothing_that_is_wider_than_without_a_model_is_called_reliable(
    found: tuple[int, int], unusual: tuple[int, int], linear: float | None
) -> None:
    for width in (10.0, 10.1, 1e9, float("inf")):
        made = fit_verdict(
            judged(*found), judged(*unusual), Use(width, width, 10.0, linear), target="price"
        )
        assert made.level == "poor"
        assert made.short.startswith(("Not reliable", "Of no use"))
        assert "no narrower than without a model" in made.headline


def test_the_few_words_go_with_the_level() -> None:
    holds, fails, unknown, none = judged(420, 442), judged(390, 442), judged(20, 20), judged(0, 0)
    cases = {
        "Reliable and useful": (holds, none, Use(6, 6, 10)),
        "Reliable, but a linear model is sharper": (holds, none, Use(6, 6, 10, 5)),
        "Useful, but not reliable for unusual rows": (holds, judged(20, 40), Use(6, 6, 10)),
        "Of little use: hardly narrower than without a model": (holds, none, Use(9.8, 9.8, 10)),
        "Too few rows to tell": (unknown, none, Use(6, 6, 10)),
        "Not reliable": (fails, none, Use(6, 6, 10)),
    }
    levels = []
    for words, (found, unusual, use) in cases.items():
        made = fit_verdict(found, unusual, use, target="price")
        assert made.short == words
        levels.append(made.level)
    assert levels == ["good", "caution", "caution", "caution", "caution", "poor"]


def test_unusual_rows_that_fail_make_it_a_caution() -> None:
    made = fit_verdict(judged(420, 442), judged(20, 40), Use(6, 6, 10), target="price")
    assert made.level == "caution"
    assert "for rows like these, but not for the most unusual ones" in made.headline


def test_copies_of_rows_are_no_further_evidence() -> None:
    """Each row five times says as much as once; five hits per group of equal rows too."""
    once = judged(238, 250)
    five = np.repeat(np.arange(250), 5)
    copied = replace(once[five], alike=five)
    assert copied.separate_rows == pytest.approx(250, rel=0.01)
    np.testing.assert_allclose(copied.covered_range, once.covered_range, atol=1e-3)
    all_inside = judged(1000, 1000)
    assert replace(all_inside, alike=np.arange(1000) // 50).separate_rows == 20
    assert all_inside.separate_rows == 1000


def test_groups_of_unlike_rows_are_nearly_separate_rows() -> None:
    rng = np.random.default_rng(0)
    found = judged(950, 1000)[rng.permutation(1000)]
    assert replace(found, alike=np.arange(1000) // 5).separate_rows > 800


def test_a_typing_error_does_not_make_the_columns_useless() -> None:
    found = judged(420, 442)
    found.y[-1] = 1e9
    said = [
        " ".join(fit_verdict(found, judged(0, 0), Use(width, width, 10), target="y").remarks)
        for width in (2.0, 9.8)
    ]
    assert ["The columns say little about the target" in words for words in said] == [False, True]


def test_infinite_intervals_are_no_use() -> None:
    assert Use(float("inf"), 1.0, 10.0).level == "poor"


def test_fit_and_evaluate_agree_about_the_same_intervals() -> None:
    for inside, rows in ((20, 20), (33, 38), (420, 442), (390, 442)):
        found, use = judged(inside, rows), Use(6, 6, 10)
        at_fit = fit_verdict(found, judged(0, 0), use, target="y")
        at_evaluation = evaluation_verdict(found, use, target="y", seen=0.0)
        assert (at_fit.level, at_fit.headline) == (at_evaluation.level, at_evaluation.headline)


def test_groups_show_what_the_whole_hides() -> None:
    found = judged(420, 442)
    groups = found.groups(-found.y, ("large", "small"))
    assert [group.rows for group in groups] == [221, 221]
    assert groups[0].covered < found.covered < groups[1].covered


def test_a_few_wide_rows_do_not_make_a_model_useless() -> None:
    """Of a target with long tails, the mean width says little."""
    made = fit_verdict(judged(420, 442), judged(0, 0), Use(1e10, 1.2, 4e7), target="price")
    assert made.level == "caution"
    assert made.headline == (
        "The 95 % intervals hold, but are over 99 % narrower than without a model for a typical "
        "row, though not in mean, which few wide ones decide."
    )
    assert made.short == "Narrow for most rows, but not in mean"
    assert fit_verdict(judged(420, 442), judged(0, 0), Use(11, 6, 10), target="p").level == "poor"
