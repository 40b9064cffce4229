"""What is unlike the training rows, in a few plain words."""

from collections.abc import Callable

import numpy as np

from accord._types import Floats
from accord._wording import count, number

Show = Callable[[float], str]

# As many training rows as this, or this share of them, are few.
_FEW_ROWS, _FEW_SHARE = 5, 0.02
# A gap between neighbouring values is one if it spans this share of all values' range.
_GAP = 0.1


def four_digits(value: float) -> str:
    return number(value, 4)


def rounded(values: Floats) -> Floats:
    """Values to 9 digits: what standardising and its reverse leave of equal numbers is equal."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(mantissa, 9), exponent)


def unlike_number(
    value: float,
    training: Floats,
    near: Floats,
    *,
    sampled: bool = False,
    show: Show = four_digits,
    beyond: str = "",
) -> str:
    """How a number stands among the training rows' and those of the nearest rows.

    ``sampled`` says that ``training`` are some of the rows only; ``beyond`` follows the value.

    **Shape**: training (R,), ascending; near (k,).

    >>> ages = np.r_[np.arange(20.0, 80.0), 88.0, 90.0]
    >>> unlike_number(93.0, ages, ages[-3:])
    '93: no training row is above 90'
    >>> unlike_number(89.0, ages, ages[-3:])
    '89: only 1 of 62 training rows is as high'
    >>> unlike_number(40.0, ages, np.array([43.0, 42.0, 44.0]))
    '40: the nearest training rows have 42 to 44'
    """
    rows = "sampled training row" if sampled else "training row"
    below = int(np.searchsorted(training, value, side="right"))
    above = len(training) - int(np.searchsorted(training, value, side="left"))
    told = show(value) + beyond
    if above == 0:
        return f"{told}: no {rows} is above {show(float(training[-1]))}"
    if below == 0:
        return f"{told}: no {rows} is below {show(float(training[0]))}"
    fewest, side = min((above, "high"), (below, "low"))
    few = fewest <= min(max(_FEW_ROWS, _FEW_SHARE * len(training)), len(training) / 4)
    if few:
        verb = "is" if fewest == 1 else "are"
        return f"{told}: only {fewest:,} of {count(len(training), rows)} {verb} as {side}"
    left, right = float(training[below - 1]), float(training[len(training) - above])
    if right - left > _GAP * (training[-1] - training[0]):
        return f"{told}: no {rows} lies between {show(left)} and {show(right)}"
    low, high = float(near.min()), float(near.max())
    span = show(low) if show(low) == show(high) else f"{show(low)} to {show(high)}"
    return f"{told}: the nearest training rows have {span}"


def unlike_gap(share: float, n_rows: int) -> str:
    """How common it is that a column's value is missing.

    >>> unlike_gap(0.0, 500), unlike_gap(0.01, 500), unlike_gap(0.5, 500)
    ('missing: no training row lacks it', 'missing: only 5 of 500 training rows lack it',
    'missing: the nearest training rows have it')
    """
    n = round(share * n_rows)
    if n == 0:
        return "missing: no training row lacks it"
    if n <= max(_FEW_ROWS, _FEW_SHARE * n_rows):
        verb = "lacks" if n == 1 else "lack"
        return f"missing: only {n:,} of {count(n_rows, 'training row')} {verb} it"
    return "missing: the nearest training rows have it"


def unlike_category(value: str, share: float | None, n_rows: int) -> str:
    """How common a category is; a share of None is unknown, but small.

    >>> unlike_category("Ulm", 0.004, 1000), unlike_category("Bonn", 0.0, 1000)
    ('Ulm: only 4 of 1,000 training rows have it', 'Bonn: no training row has it')
    >>> unlike_category("Köln", 0.3, 1000)
    'Köln: 300 of 1,000 training rows have it, not the nearest ones'
    """
    rows = count(n_rows, "training row")
    if share is None:
        return f"{value}: rare among the training rows"
    n = round(share * n_rows)
    if n == 0:
        return f"{value}: no training row has it"
    if n <= max(_FEW_ROWS, _FEW_SHARE * n_rows):
        return f"{value}: only {n:,} of {rows} {'has' if n == 1 else 'have'} it"
    return f"{value}: {n:,} of {rows} have it, not the nearest ones"
