"""Standard errors: known answers and simulation."""

import math

import numpy as np
import pytest

from accord.datasets import info
from accord.paper.results import MeanOverSplits, jackknife, paired_difference, standard_errors_apart
from accord.paper.study import Figure, is_grey, printed, published, published_datasets


def test_standard_error_by_simulation() -> None:
    draws = np.random.default_rng(0).normal(5, 2, size=(4000, 20))
    estimates = [MeanOverSplits.over(row.tolist()) for row in draws]
    spread = np.std([e.value for e in estimates])
    assert np.sqrt(np.mean([e.error**2 for e in estimates])) == pytest.approx(spread, rel=0.03)


def test_one_split_has_no_error() -> None:
    one = MeanOverSplits.over([3.0])
    assert one.value == 3.0
    assert math.isnan(one.error)
    assert math.isnan(standard_errors_apart(one, Figure(2.0, 0.1, 2)))


def test_pairing_removes_what_splits_share() -> None:
    shared = np.random.default_rng(1).normal(0, 10, size=20)
    difference = paired_difference((shared + 0.5).tolist(), shared.tolist())
    assert difference.value == pytest.approx(0.5)
    assert difference.error == pytest.approx(0, abs=1e-9)
    with pytest.raises(ValueError, match="same splits, got 2, 1"):
        paired_difference([1.0, 2.0], [1.0])


def test_errors_combine_in_squares_and_rounding_counts() -> None:
    assert standard_errors_apart(MeanOverSplits(1.5, 0.3, 9), Figure(1.0, 0.4, 9)) == pytest.approx(
        1.0
    )
    rounded = standard_errors_apart(MeanOverSplits(0.098, 0.0001, 20), Figure(0.10, 0.0, 2))
    assert -1 < rounded < 0, "a printed 0.10 does not exclude 0.098"


def test_a_single_published_run_varies_as_ours() -> None:
    ours = MeanOverSplits(2.0, 0.1, 4)
    single = standard_errors_apart(ours, Figure(1.0, None, 9, single=True))
    mean = standard_errors_apart(ours, Figure(1.0, None, 9))
    assert single == pytest.approx(1 / math.hypot(0.1, 0.2))
    assert mean == pytest.approx(1 / math.hypot(0.1, 0.1))


class TestJackknife:
    def test_mean_curve_then_statistic(self) -> None:
        """Errors of opposite sign cancel between splits, not between levels."""
        between_splits = np.array([[0.2, 0.2], [-0.2, -0.2]])
        between_levels = np.array([[0.2, -0.2], [0.2, -0.2]])
        assert jackknife(between_splits, "mean").value == pytest.approx(0.0)
        assert jackknife(between_levels, "mean").value == pytest.approx(0.2)

    def test_maximum(self) -> None:
        assert jackknife(np.array([[0.1, -0.4], [0.1, -0.2]]), "max").value == pytest.approx(0.3)

    def test_error_of_a_linear_statistic_is_the_usual_one(self) -> None:
        curves = 1 + np.random.default_rng(2).normal(0, 0.01, size=(20, 9))
        usual = MeanOverSplits.over(curves.mean(axis=1).tolist())
        assert jackknife(curves, "mean").error == pytest.approx(usual.error)

    def test_a_difference_is_paired(self) -> None:
        """Two methods that miss by the same noise differ by a constant, without any error."""
        noise = np.random.default_rng(3).normal(0, 0.05, size=(20, 1))
        gap = jackknife(0.3 + noise + np.zeros((20, 9)), "mean", minus=0.2 + noise + np.zeros(9))
        assert gap.value == pytest.approx(0.1)
        assert gap.error == pytest.approx(0.0, abs=1e-12)


def test_figures_that_the_text_repeats() -> None:
    assert published("table1", "energy", "nll", "BVM") == Figure(1.67, 0.13, 2)
    assert published("table1", "energy", "nll", "Deep Ensembles") == Figure(1.38, 0.22, 2)
    assert published("table2", "google", "nll", "BVM eps=0.1") == Figure(5.13, None, 2, single=True)
    assert published("calibration", "energy", "ece", "BVM") == Figure(0.0142, None, 4)


def test_shifts_have_no_method() -> None:
    assert published("table3", "yacht", "mean_shift") == Figure(0.26, None, 2, single=True)


def test_what_is_not_printed_is_none() -> None:
    assert published("table3", "boston", "nll", "PBP") is None
    assert published("table1", "google", "nll", "BVM") is None
    with pytest.raises(KeyError, match="table3 prints no nll of PBP on boston"):
        printed("table3", "boston", "nll", "PBP")


@pytest.mark.parametrize("table", ["table1", "table3", "calibration"])
def test_rows_are_the_nine_sets(table: str) -> None:
    rows = published_datasets(table)  # type: ignore[arg-type]
    assert len(rows) == 9
    assert all(info(name).name == name for name in rows)


def test_grey_rows() -> None:
    white = {name for name in published_datasets("table3") if not is_grey(name)}
    assert white == {"naval", "power", "protein"}
