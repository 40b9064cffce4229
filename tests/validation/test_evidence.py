"""Evidence that may be looked at every day: exact expectations, false alarms, power.

What is simulated here is what the page on monitoring states.
"""

from fractions import Fraction
from itertools import product
from pathlib import Path

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from accord.validation import coverage_log_evidence, coverage_sequence

STREAMS, BATCHES = 1_000, 1_000
ALARM = np.log(20)
PAGE = (Path(__file__).parents[2] / "docs" / "monitoring.md").read_text(encoding="utf-8")


def streams(coverage: float, *, seed: int, batches: int = BATCHES) -> tuple[NDArray, NDArray]:
    """Batches of 1 to 40 rows, whose sizes differ, as they do from day to day."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(1, 41, (STREAMS, batches))
    return rows, rng.binomial(rows, 1 - coverage)


def by_definition(rows: list[int], misses: list[int], *, tolerated: float) -> float:
    """The evidence as the docstring writes it: all beginnings, and all powers written out."""
    total = mpmath.mpf(0)
    last = len(rows)
    for step in range(1, 17):
        odds = mpmath.mpf(tolerated) / (1 - mpmath.mpf(tolerated)) * mpmath.exp(step / 4)
        p = odds / (1 + odds)
        for begin in range(1, last + 1):
            n, k = sum(rows[begin - 1 :]), sum(misses[begin - 1 :])
            bet = (p / tolerated) ** k * ((1 - p) / (1 - tolerated)) ** (n - k)
            total += bet / 16 / (begin * (begin + 1))
    return float(total + mpmath.mpf(1) / (last + 1))


def test_the_evidence_is_the_sum_that_it_is_said_to_be() -> None:
    rows, misses = [7, 30, 1, 12], [2, 1, 1, 6]
    found = np.exp(coverage_log_evidence(rows, misses, coverage=0.9, margin=0.02))
    expected = [
        by_definition(rows[:n], misses[:n], tolerated=0.12) for n in range(1, len(rows) + 1)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(("miss", "relation"), [(0.25, "one"), (0.2, "less")])
def test_its_expectation_over_all_outcomes_is_one_where_the_promise_is_just_kept(
    miss: float, relation: str
) -> None:
    outcomes = np.array(list(product([0, 1], repeat=8)))
    weight = np.array(
        [
            float(Fraction(miss) ** sum(o) * (1 - Fraction(miss)) ** (8 - sum(o)))
            for o in outcomes.tolist()
        ]
    )
    values = np.exp(
        coverage_log_evidence(np.ones_like(outcomes), outcomes, coverage=0.76, margin=0.01)
    )
    means = weight @ values
    if relation == "one":
        np.testing.assert_allclose(means, 1.0, rtol=1e-12)
    else:
        assert np.all(np.diff(means, prepend=1.0) < 0)


def test_kept_promises_are_rarely_called_broken_however_often_one_looks() -> None:
    # The largest share of misses that is tolerated: the case in which alarms are most frequent.
    rows, misses = streams(0.94, seed=0)
    evidence = coverage_log_evidence(rows, misses, coverage=0.95)
    alarms = np.mean(evidence.max(axis=1) >= ALARM)
    assert 0 < alarms <= 0.05
    assert f"| {100 * alarms:.1f} % |" in PAGE
    # A test of fixed size, asked after every batch, would fail in many streams.
    total, missed = rows.cumsum(axis=1), misses.cumsum(axis=1)
    z = (missed - 0.06 * total) / np.sqrt(0.06 * 0.94 * total)
    assert np.mean(z[:, 10:].max(axis=1) > 1.645) > 0.3


def test_coverage_of_80_instead_of_90_per_cent_is_found_within_400_rows() -> None:
    rows, misses = streams(0.8, seed=1, batches=100)
    evidence = coverage_log_evidence(rows, misses, coverage=0.9)
    seen = rows.cumsum(axis=1)
    found = np.array([int(np.argmax(line >= ALARM)) for line in evidence])
    assert np.all(evidence.max(axis=1) >= ALARM)
    needed = seen[np.arange(STREAMS), found]
    assert np.median(needed) <= 200
    assert np.quantile(needed, 0.95) <= 400
    assert f"| {np.median(needed):.0f}; {np.quantile(needed, 0.95):.0f} |" in PAGE


def test_a_fault_that_begins_late_is_found_almost_as_soon() -> None:
    good, good_misses = streams(0.9, seed=2, batches=400)
    bad, bad_misses = streams(0.8, seed=3, batches=100)
    rows, misses = np.hstack([good, bad]), np.hstack([good_misses, bad_misses])
    evidence = coverage_log_evidence(rows, misses, coverage=0.9)
    found = np.argmax(evidence[:, 400:] >= ALARM, axis=1)
    needed = bad.cumsum(axis=1)[np.arange(STREAMS), found]
    assert np.quantile(needed, 0.95) <= 1_000
    assert f"| {np.median(needed):.0f}; {np.quantile(needed, 0.95):.0f} |" in PAGE


def test_the_sequence_of_intervals_contains_the_coverage_throughout() -> None:
    rows, misses = streams(0.9, seed=4, batches=200)
    lower, upper = np.moveaxis(coverage_sequence(rows, misses), -1, 0)
    assert np.mean(np.all((lower <= 0.9) & (upper >= 0.9), axis=1)) >= 0.95
    assert np.all(upper[:, -1] - lower[:, -1] < 0.05)


@pytest.mark.parametrize(("n", "k"), [(20, 3), (500, 40), (10, 0), (10, 10)])
def test_interval_ends_solve_their_equation(n: int, k: int) -> None:
    ends = [0, *(np.arange(1, 50) / 50), 1]  # short pieces, or quadrature misses the peak
    mixed = mpmath.quad(lambda p: p ** (k - 0.5) * (1 - p) ** (n - k - 0.5) / mpmath.pi, ends)
    for end in coverage_sequence([n], [k])[0]:
        if 0 < end < 1:
            likelihood = mpmath.mpf(1 - end) ** k * mpmath.mpf(end) ** (n - k)
            assert float(mixed / likelihood) == pytest.approx(20, rel=1e-3)
        else:  # no miss excludes a coverage of 1, no hit one of 0
            assert k == (0 if end == 1 else n)


def test_batches_without_rows_change_nothing_but_the_count_of_batches() -> None:
    interval = coverage_sequence([50, 0], [3, 0])
    np.testing.assert_allclose(interval[0], interval[1], atol=1e-12)
    np.testing.assert_allclose(coverage_sequence([0], [0]), [[0, 1]], atol=1e-12)


@pytest.mark.parametrize(
    ("rows", "misses", "options", "message"),
    [
        ([10], [11], {}, "between 0 and the number of rows"),
        ([10, 10], [1], {}, "one number per batch"),
        ([10], [1], {"margin": -0.1}, "margin must be at least 0"),
        ([10], [1], {"coverage": 1.0}, "coverage"),
    ],
)
def test_refusals(rows: list[int], misses: list[int], options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        coverage_log_evidence(rows, misses, **({"coverage": 0.9} | options))
