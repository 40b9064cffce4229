"""Rules: what they say, how they combine, how they print."""

import numpy as np
import pytest
import torch

from accord.agreement import (
    Asymmetric,
    AtLeast,
    AtMost,
    ErrorInside,
    Exact,
    Inside,
    Rule,
    Within,
    WithinRelative,
)

RULES = {
    "within": Within(0.5),
    "within per row": Within([0.2, 0.5, 1.0, 0.0]),
    "relative": WithinRelative(0.25),
    "asymmetric": Asymmetric(below=0.1, above=0.7),
    "one-sided band": Asymmetric(below=np.inf, above=0.7),
    "at least": AtLeast(),
    "at most": AtMost(),
    "biased": ErrorInside(0.2, [0.3, 0.5, np.inf, 0.2]),
    "inside": Inside(-1.0, 2.0),
    "inside per row": Inside([-1.0, 0.0, 1.0, -np.inf], [2.0, 1.0, np.inf, 0.0]),
    "both": Within(0.5) & AtLeast(),
    "either": Inside(2.0, 4.0) | Within(0.5),
    "not": ~Within(0.5),
    "nested": ~(AtLeast() & ~Inside(0.0, 1.0)) | WithinRelative(0.1),
}
Y = np.array([-1.3, 0.0, 0.9, 2.5])


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_intervals_and_boolean_say_the_same(rule: Rule) -> None:
    y_hat = np.linspace(-6, 6, 401)[:, None] + 1e-3 * np.pi  # off every bound
    set_ = rule.intervals(torch.tensor(Y))
    lower, upper = set_.lower_bounds.numpy()[:, None], set_.upper_bounds.numpy()[:, None]
    inside = ((y_hat >= lower) & (y_hat <= upper)).any(0)
    np.testing.assert_array_equal(rule(np.broadcast_to(y_hat, (401, 4)), Y), inside)


@pytest.mark.parametrize(
    ("rule", "words", "code"),
    [
        (Exact(), "exact", "Exact()"),
        (Within(0.5), "within 0.5", "Within(0.5)"),
        (WithinRelative(0.05), "within 5% of the datum", "WithinRelative(0.05)"),
        (
            Asymmetric(below=0.1, above=0.3),
            "within -0.1 +0.3",
            "Asymmetric(below=0.1, above=0.3)",
        ),
        (Inside(1, 2), "inside 1 2", "Inside(1.0, 2.0)"),
        (~AtMost(), "not at most the datum", "~AtMost()"),
        (
            (Within(1) | AtLeast()) & ~(Within(2) & AtMost()),
            "(within 1 or at least the datum) and not (within 2 and at most the datum)",
            "(Within(1.0) | AtLeast()) & ~(Within(2.0) & AtMost())",
        ),
        (Within([0.1, 0.4]), "within 0.1…0.4 (2 rows)", "Within([0.1, 0.4])"),
    ],
)
def test_rules_print_readably(rule: Rule, words: str, code: str) -> None:
    assert str(rule) == words
    assert repr(rule) == code


def test_rules_are_values() -> None:
    assert Within(0.5) == Within(np.float64(0.5))
    assert hash(Within(0.5)) == hash(Within(0.5))
    assert Within([0.1, 0.2]) == Within(np.array([0.1, 0.2]))
    assert Within(0.5) != Within(0.6)
    assert Within(0.5) != WithinRelative(0.5)
    assert ~~Within(0.5) == Within(0.5)
    with pytest.raises(AttributeError):
        Within(0.5).tolerance = 1.0


def test_callable_combines_from_either_side() -> None:
    def same_sign(y_hat, y):
        return y_hat * y > 0

    for rule in (Within(0.5) & same_sign, same_sign & Within(0.5)):
        np.testing.assert_array_equal(rule([0.1, -0.1], [0.2, 0.2]), [True, False])
        assert rule.intervals(torch.tensor([0.2])) is None
    assert str(same_sign | Within(0.5)) == "same_sign or within 0.5"


def test_dependence_and_density() -> None:
    assert (Within(1) & ~AtLeast()).depends_on == "difference"
    assert (~Inside(0, 1)).depends_on == "prediction"
    assert (Within(1) & Inside(0, 1)).depends_on == "both"
    assert WithinRelative(0.1).depends_on == "both"
    assert Exact().is_density
    assert (Exact() & Inside(0, 1)).is_density
    assert not (Exact() | Inside(0, 1)).is_density
    assert not (~Exact()).is_density


def test_take_selects_rows() -> None:
    rule = Within([0.1, 0.2, 0.3]) & ~Inside([0.0, 1.0, 2.0], 5.0)
    assert rule.take([2, 0]) == Within([0.3, 0.1]) & ~Inside([2.0, 0.0], 5.0)
    assert (Within(1) & AtLeast()).take(slice(1)) == Within(1) & AtLeast()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Within(-0.1), "tolerance must be non-negative, got -0.1. Use Exact"),
        (lambda: Within(float("nan")), "tolerance must be non-negative, got nan"),
        (lambda: Within([0.1, np.inf]), "tolerance must be finite, got inf at index 1"),
        (lambda: Asymmetric(below=1, above=-1), "above must be non-negative"),
        (lambda: Inside(2, 1), "lower must not exceed upper, got 2.0 and 1.0"),
        (lambda: ErrorInside(0.2, 0.1), "lower must not exceed upper"),
        (lambda: Inside(np.nan, 1), "lower must not be NaN"),
        (lambda: Within([0.1, 0.2])([1.0], [1.0]), r"shape \(2,\) of the tolerance"),
        (
            lambda: Rule.from_callable(lambda a, b: a - b)([1.0], [1.0]),
            "must answer with booleans",
        ),
        (
            lambda: Rule.from_callable(lambda a, b: (a > b).all())([1.0], [1.0]),
            r"got bool of shape \(\)",
        ),
    ],
)
def test_bad_input(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_column_and_row_never_broadcast() -> None:
    with pytest.raises(ValueError, match="must be a scalar or end in the shape"):
        Within([0.1, 0.2, 0.3]).intervals(torch.zeros(3, 1))


def test_integer_tensor_is_refused() -> None:
    with pytest.raises(TypeError, match="floating-point"):
        Within(torch.tensor(1))


def test_rule_and_something_else_is_refused() -> None:
    with pytest.raises(TypeError, match="must be an agreement rule or a callable"):
        Within(1) & 3
