"""Input checks with one wording: the rule, what was received, what to do.

Each check takes the argument's name and its value (a number, an array or a tensor) and raises

    ValueError: tolerance must be non-negative, got -0.1. Use 0 for exact agreement (NLL).

Values of a tensor that cannot be looked at (under ``torch.func.vmap`` or ``torch.compile``) are let
through; shapes and kinds are always checked.
"""

import sys
from collections.abc import Callable, Collection
from numbers import Integral
from typing import Any

import numpy as np

RandomState = int | np.integer[Any] | np.random.Generator | np.random.RandomState | None
"""What ``random_state`` may be: a seed, a generator to draw from, or None for fresh randomness."""
LARGEST_TARGET = 1e150
"""Squares of larger targets leave the range of floats."""


def check_positive(name: str, value: Any, *, remedy: str = "") -> None:
    """Refuse values that are zero, negative or NaN.

    >>> check_positive("std", [1.0, 0.0], remedy="Use a small positive floor.")
    Traceback (most recent call last):
    ValueError: std must be positive, got 0.0 at index 1. Use a small positive floor.
    """
    _refuse(name, value, lambda v: ~(v > 0), "must be positive", remedy)


def check_non_negative(name: str, value: Any, *, remedy: str = "") -> None:
    """Refuse values that are negative or NaN."""
    _refuse(name, value, lambda v: ~(v >= 0), "must be non-negative", remedy)


def check_finite(name: str, value: Any, *, remedy: str = "") -> None:
    """Refuse NaN and infinities."""
    _refuse(name, value, lambda v: ~(abs(v) < float("inf")), "must be finite", remedy)


def check_target_size(name: str, value: Any) -> None:
    """Refuse targets whose squares leave the range of floats."""
    remedy = "Correct it, or change the unit."
    rule = f"must lie within ±{LARGEST_TARGET:g}"
    _refuse(name, value, lambda v: abs(v) > LARGEST_TARGET, rule, remedy)


def check_not_nan(name: str, value: Any) -> None:
    """Refuse NaN, let infinities pass."""
    _refuse(name, value, lambda v: v != v, "must not be NaN", "")


def check_probability(name: str, value: Any, *, strict: bool = False, remedy: str = "") -> None:
    """Refuse what does not lie in [0, 1], or with ``strict`` in (0, 1).

    >>> check_probability("coverage", 95, strict=True, remedy="Write 0.95 for 95 %.")
    Traceback (most recent call last):
    ValueError: coverage must lie strictly between 0 and 1, got 95. Write 0.95 for 95 %.
    """
    if strict:
        rule = "must lie strictly between 0 and 1"
        _refuse(name, value, lambda v: ~((v > 0) & (v < 1)), rule, remedy)
    else:
        _refuse(name, value, lambda v: ~((v >= 0) & (v <= 1)), "must lie between 0 and 1", remedy)


def check_ordered(
    lower_name: str, lower: Any, upper_name: str, upper: Any, *, strict: bool = False
) -> None:
    """Refuse a lower bound above its upper bound (or equal to it, with ``strict``), and NaN.

    >>> check_ordered("lower", 2.0, "upper", [3.0, 1.0])
    Traceback (most recent call last):
    ValueError: lower must not exceed upper, got 2.0 and 1.0 at index 1. Exchange the two if their
    order was confused.
    """
    check_not_nan(lower_name, lower)
    check_not_nan(upper_name, upper)
    low, high = _values(lower), _values(upper)
    if _is_hidden(low) or _is_hidden(high):
        return
    place = _first(low >= high if strict else low > high)
    if place is not None:
        pair = (np.broadcast_to(np.asarray(v), np.shape(low - high))[place] for v in (low, high))
        rule = f"must {'lie below' if strict else 'not exceed'} {upper_name}"
        remedy = "Exchange the two if their order was confused."
        raise ValueError(_sentence(lower_name, rule, " and ".join(map(str, pair)), place, remedy))


def check_same_shape(**values: Any) -> None:
    """Refuse arrays of different shapes, so that (N,) and (N, 1) never broadcast by accident.

    >>> check_same_shape(mean=np.zeros(3), std=np.ones((3, 1)))
    Traceback (most recent call last):
    ValueError: mean and std must have the same shape, got mean (3,) and std (3, 1). Reshape one of
    them, for instance with ravel().
    """
    shapes = {name: tuple(np.shape(value)) for name, value in values.items()}
    if len(set(shapes.values())) > 1:
        got = " and ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(
            f"{' and '.join(shapes)} must have the same shape, got {got}. "
            "Reshape one of them, for instance with ravel()."
        )


def check_fits(name: str, value: Any, shape: tuple[int, ...], *, owner: str) -> None:
    """Refuse a value that is neither a scalar nor of shape ``(..., *shape)``."""
    got = tuple(np.shape(value))
    fits = len(got) >= len(shape) and got[len(got) - len(shape) :] == shape
    if got and not fits:
        raise ValueError(
            f"{name} must be a scalar or end in the shape {shape} of the {owner}, got shape {got}. "
            "Reshape it, for instance with ravel() or [..., None]."
        )


def check_trailing(name: str, value: Any, shape: tuple[int, ...], *, owner: str) -> None:
    """Refuse a value whose shape is not the end of ``shape``; a scalar always is.

    >>> check_trailing("tolerance", np.ones((4, 1)), (3, 4), owner="base")
    Traceback (most recent call last):
    ValueError: tolerance must be a scalar or have the last axes of the base's shape (3, 4), got
    shape (4, 1). Reshape it, for instance with ravel().
    """
    got = tuple(np.shape(value))
    if len(got) > len(shape) or got != shape[len(shape) - len(got) :]:
        raise ValueError(
            f"{name} must be a scalar or have the last axes of the {owner}'s shape {shape}, got "
            f"shape {got}. Reshape it, for instance with ravel()."
        )


def check_scalar(name: str, value: Any, *, remedy: str = "") -> None:
    """Refuse everything but a single number."""
    shape = tuple(np.shape(value))
    if shape:
        raise ValueError(f"{name} must be one number, got shape {shape}. {remedy}".rstrip())


def check_not_empty(name: str, value: Any) -> None:
    """Refuse arrays without elements."""
    shape = tuple(np.shape(value))
    if 0 in shape:
        raise ValueError(f"{name} must not be empty, got shape {shape}. Pass at least one row.")


def check_floating(name: str, value: Any) -> None:
    """Refuse integer, boolean and complex tensors, which would round or lose gradients silently."""
    if _is_tensor(value) and not value.is_floating_point():
        raise TypeError(
            f"{name} must be a floating-point tensor, got {value.dtype}. Convert it with .double()."
        )


def check_choice(name: str, value: Any, choices: Collection[str]) -> None:
    """Refuse what is not one of the named choices."""
    if value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {listed}, got {value!r}.")


def check_count(name: str, value: Any, *, minimum: int = 1) -> None:
    """Refuse what is not an integer of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}. Use a whole number.")
    if int(value) < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}.")


def generator_from(random_state: RandomState) -> np.random.Generator | np.random.RandomState:
    """The generator that ``random_state`` stands for.

    >>> bool(generator_from(0).random() == generator_from(0).random())
    True
    """
    if isinstance(random_state, np.random.Generator | np.random.RandomState):
        return random_state
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        raise TypeError(
            "random_state must be an integer, a numpy Generator or RandomState, or None, "
            f"got {type(random_state).__name__}. Use an integer seed for repeatable numbers."
        )
    check_non_negative("random_state", random_state, remedy="Use a seed such as 0.")
    return np.random.default_rng(int(random_state))


def sklearn_seed(random_state: RandomState) -> Any:
    """What scikit-learn takes for ``random_state``: for a ``Generator``, a seed drawn from it.

    >>> sklearn_seed(3)
    3
    """
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    return random_state


def drawn_seeds(random_state: RandomState, n: int) -> list[int]:
    """``n`` seeds, all from ``random_state``.

    >>> drawn_seeds(0, 2)
    [209652396, 398764591]
    """
    from sklearn.utils import check_random_state  # slow to import, and most checks need none

    drawn = check_random_state(sklearn_seed(random_state)).randint(2**31 - 1, size=n)
    return [int(seed) for seed in drawn]


def _refuse(name: str, value: Any, is_bad: Callable[[Any], Any], rule: str, remedy: str) -> None:
    values = _values(value)
    if _is_hidden(values):
        return
    if not _is_tensor(values) and values.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be a number, got {value!r}. {remedy}".rstrip())
    place = _first(is_bad(values))
    if place is not None:
        received = str(np.asarray(values)[place])
        raise ValueError(_sentence(name, rule, received, place, remedy))


def _first(bad: Any) -> tuple[int, ...] | None:
    """The index of the first true element, None where there is none."""
    if not bool(bad.any()):
        return None
    return tuple(int(axis) for axis in np.argwhere(np.asarray(bad))[0])


def _sentence(name: str, rule: str, received: str, place: tuple[int, ...], remedy: str) -> str:
    where = f" at index {place[0] if len(place) == 1 else place}" if place else ""
    return f"{name} {rule}, got {received}{where}. {remedy}".rstrip()


def _values(value: Any) -> Any:
    return value.detach().cpu() if _is_tensor(value) else np.asarray(value)


def _is_tensor(value: Any) -> bool:
    # torch is looked up, not imported: whoever holds a tensor has imported it already.
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _is_hidden(values: Any) -> bool:
    if not _is_tensor(values):
        return False
    torch = sys.modules["torch"]
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor(values)
    return bool(wrapped or torch.compiler.is_compiling())
