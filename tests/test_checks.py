"""One wording for all refusals, for numbers, arrays and tensors alike."""

import re
from collections.abc import Callable

import numpy as np
import pytest
import torch

from accord import _checks

KINDS = [np.asarray, lambda x: torch.tensor(x, dtype=torch.float64)]
kinds = pytest.mark.parametrize("kind", KINDS, ids=["array", "tensor"])

REFUSALS = [
    (_checks.check_positive, [1.0, 0.0], "x must be positive, got 0.0 at index 1."),
    (_checks.check_positive, float("nan"), "x must be positive, got nan."),
    (
        _checks.check_non_negative,
        [[1.0], [-2.0]],
        "x must be non-negative, got -2.0 at index (1, 0).",
    ),
    (_checks.check_non_negative, float("nan"), "x must be non-negative, got nan."),
    (_checks.check_finite, [np.inf], "x must be finite, got inf at index 0."),
    (_checks.check_finite, [np.nan], "x must be finite, got nan at index 0."),
    (_checks.check_not_nan, [0.0, np.nan], "x must not be NaN, got nan at index 1."),
    (_checks.check_probability, 1.5, "x must lie between 0 and 1, got 1.5."),
    (_checks.check_probability, float("nan"), "x must lie between 0 and 1, got nan."),
]


@kinds
@pytest.mark.parametrize(("check", "value", "message"), REFUSALS)
def test_refusals_name_rule_value_and_place(kind, check, value, message) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        check("x", kind(value))


def test_the_remedy_comes_last() -> None:
    message = "tolerance must be non-negative, got -0.1. Use 0 for exact agreement (NLL)."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        _checks.check_non_negative("tolerance", -0.1, remedy="Use 0 for exact agreement (NLL).")


@kinds
def test_what_is_good_passes(kind) -> None:
    _checks.check_positive("x", kind([1e-300, np.inf]))
    _checks.check_non_negative("x", kind([0.0, 1.0]))
    _checks.check_finite("x", kind([-1e308, 1e308]))
    _checks.check_not_nan("x", kind([np.inf]))
    _checks.check_probability("x", kind([0.0, 1.0]))
    _checks.check_probability("x", kind([0.1]), strict=True)
    _checks.check_ordered("low", kind([0.0, 1.0]), "high", kind([0.0, 2.0]))
    _checks.check_same_shape(a=kind([1.0]), b=kind([2.0]))
    _checks.check_fits("x", kind([[1.0, 2.0]]), (2,), owner="y")
    _checks.check_fits("x", kind(1.0), (2,), owner="y")
    _checks.check_trailing("x", kind([1.0, 2.0]), (3, 2), owner="y")
    _checks.check_floating("x", kind([1.0]))
    _checks.check_not_empty("x", kind([1.0]))
    _checks.check_choice("x", "a", ("a", "b"))
    _checks.check_count("x", np.int64(3))


@kinds
def test_order(kind) -> None:
    with pytest.raises(ValueError, match=r"low must not exceed high, got 2\.0 and 1\.0 at index 1"):
        _checks.check_ordered("low", kind([0.0, 2.0]), "high", kind([0.0, 1.0]))
    with pytest.raises(ValueError, match=r"low must lie below high, got 0\.0 and 0\.0 at index 0"):
        _checks.check_ordered("low", kind([0.0]), "high", kind([0.0]), strict=True)
    with pytest.raises(ValueError, match="high must not be NaN"):
        _checks.check_ordered("low", kind([0.0]), "high", kind([np.nan]))


@kinds
def test_shapes(kind) -> None:
    with pytest.raises(
        ValueError, match=r"a and b must have the same shape, got a \(2,\) and b \(2, 1\)"
    ):
        _checks.check_same_shape(a=kind([1.0, 2.0]), b=kind([[1.0], [2.0]]))
    with pytest.raises(
        ValueError, match=r"end in the shape \(2,\) of the thing, got shape \(2, 1\)"
    ):
        _checks.check_fits("x", kind([[1.0], [2.0]]), (2,), owner="thing")
    with pytest.raises(ValueError, match=r"end in the shape \(2, 2\)"):
        _checks.check_fits("x", kind([1.0, 2.0]), (2, 2), owner="thing")
    with pytest.raises(
        ValueError, match=r"last axes of the thing's shape \(2,\), got shape \(1, 2\)"
    ):
        _checks.check_trailing("x", kind([[1.0, 2.0]]), (2,), owner="thing")
    with pytest.raises(ValueError, match=r"x must not be empty, got shape \(0,\)"):
        _checks.check_not_empty("x", kind([]))
    with pytest.raises(ValueError, match=r"x must be one number, got shape \(1,\)"):
        _checks.check_scalar("x", kind([1.0]))


@pytest.mark.parametrize("dtype", [torch.int32, torch.bool, torch.complex64])
def test_only_floating_tensors(dtype: torch.dtype) -> None:
    with pytest.raises(TypeError, match=r"x must be a floating-point tensor, got torch\."):
        _checks.check_floating("x", torch.zeros(2, dtype=dtype))


def test_choices_and_counts() -> None:
    with pytest.raises(ValueError, match="x must be one of 'a', 'b', got 'c'"):
        _checks.check_choice("x", "c", ("a", "b"))
    with pytest.raises(ValueError, match="x must be at least 1, got 0"):
        _checks.check_count("x", 0)
    for value in (1.0, True, "1"):
        with pytest.raises(TypeError, match="x must be an integer"):
            _checks.check_count("x", value)


@pytest.mark.parametrize("value", [None, "0.1", [None], {"a": 1}])
@pytest.mark.parametrize(
    "check", [_checks.check_positive, _checks.check_non_negative, _checks.check_finite]
)
def test_what_is_no_number(check: Callable[..., None], value: object) -> None:
    with pytest.raises(TypeError, match=r"x must be a number, got .* Use 0."):
        check("x", value, remedy="Use 0.")


def test_values_under_vmap_pass_and_shapes_do_not() -> None:
    def checked(x: torch.Tensor) -> torch.Tensor:
        _checks.check_positive("x", x)
        _checks.check_ordered("x", x, "y", -x)
        return x

    rows = torch.tensor([[1.0], [-1.0]])
    torch.testing.assert_close(torch.func.vmap(checked)(rows), rows)


def test_a_seed_repeats_and_a_generator_goes_on() -> None:
    assert _checks.generator_from(7).random() == _checks.generator_from(np.int32(7)).random()
    legacy = np.random.RandomState(0)
    assert _checks.generator_from(legacy) is legacy
    assert _checks.generator_from(None).random() != _checks.generator_from(None).random()
    with pytest.raises(ValueError, match="random_state must be non-negative, got -1"):
        _checks.generator_from(-1)
    for value in (True, 1.5, "seed"):
        with pytest.raises(TypeError, match="random_state must be an integer, a numpy Generator"):
            _checks.generator_from(value)


def test_seeds_come_from_whatever_random_state_is() -> None:
    """A generator goes on too, and its seeds repeat with it."""
    assert _checks.drawn_seeds(0, 3) == _checks.drawn_seeds(np.random.RandomState(0), 3)
    generator = np.random.default_rng(0)
    first, second = (_checks.drawn_seeds(generator, 2) for _ in "ab")
    assert first != second
    assert first == _checks.drawn_seeds(np.random.default_rng(0), 2)
